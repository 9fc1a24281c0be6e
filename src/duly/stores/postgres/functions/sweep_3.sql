-- What some worker must do from time to time, by one worker at a time: claims without a worker and attempts past their
-- deadline go back as lost; expired waiting jobs become skipped; jobs of tasks that nobody knows die; jobs of resumed tasks
-- become ready; what full queues hold too much of is shed; jobs under the previous release's keys of names move; keys and wishes that were left are removed, follow-ups
-- that are owed enqueued; what waits behind a key or a limit that no longer holds it back goes on, and
-- what was told of it late is told again; a sample for the rates and of the bytes in use
-- and a reading of the load are kept.
-- Lock: advisory try-lock, then those of the parts. Index: see the parts. Differs: none.
create function {schema}.sweep_3(p_unknown_after float8, p_poison int, p_grace float8, p_now timestamptz)
returns table (ran boolean, expired int, orphans int, overdue int, abandoned int, unparked int, shed int)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_began timestamptz := clock_timestamp();
begin
    perform require_read_committed_1();
    ran := sweep_turn_1('sweep', v_now, 1);
    if not ran then
        return next;
        return;
    end if;
    select t.orphans, t.overdue into orphans, overdue from take_back_stray_1(p_grace, p_poison, v_now) t;
    expired := expire_waiting_1(v_now);
    abandoned := abandon_unknown_3(v_now - p_unknown_after * interval '1 second', v_now);
    perform rekey_waiting_2();
    unparked := unpark_resumed_2(v_now);
    shed := shed_1(v_now);
    perform free_left_keys_1(v_now);
    -- Wishes of callers that committed after their job had ended. Every exchange reads all wishes.
    delete from wish where id = any(array(
        select w.id from wish w
         where coalesce((select true from finished f where f.id = w.id), (select true from dead d where d.id = w.id))
         limit 1000 for update skip locked));
    perform mind_words_1(v_now);
    perform pay_owed_1(v_now);
    perform heal_keys_1(v_now);
    perform heal_limits_1(v_now);
    perform heal_batches_1(v_now);
    perform tell_bounds_1();
    perform unfair_1();
    perform part_lanes_1();
    perform keep_sample_2(v_now);
    perform keep_load_1(v_now);
    perform measure_use_1(interval '10 seconds', v_now);
    update sweep set cost = least(clock_timestamp() - v_began, interval '3 seconds') where name = 'sweep';
    return next;
end
$$;
