-- Stores jobs that are ready at once, some of which have tags, a unique key, an idempotency key or an ordering key. Answers
-- as enqueue_3. That one takes any jobs, and starts a dozen statements before the first of them.
-- Lock, in this order: idempotency keys, then unique keys, each sorted; with p_own false as store_jobs_2. Index: those of
-- take_idempotency_1 and take_unique_1. Differs: SQLite takes ids from its sequence row.
create function {schema}.enqueue_keyed_many_1(
    p_queues text[], p_queue_keys bigint[], p_suspect_keys bigint[], p_tasks text[], p_task_keys bigint[], p_args bytea[],
    p_priorities int[], p_timeouts float8[], p_attempts int[], p_tenants text[], p_tags text[], p_correlations text[],
    p_triggers text[], p_idempotency bytea[], p_unique bytea[], p_live boolean[], p_replace boolean[], p_ordering_keys text[],
    p_orderings bigint[], p_own boolean, p_now timestamptz
) returns table (id bigint, run_at timestamptz, outcome text, place int)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_mine bigint[] := array(select nextval('pos') from generate_series(1, cardinality(p_queues)));
    v_ids bigint[] := v_mine;
    v_outcomes text[] := array_fill('created'::text, array[cardinality(v_mine)]);
    v_replaced bigint[] := '{}';
    v_by bigint[] := '{}';
    v_reused int;
    v_key record;
    v_told record;
begin
    if p_own then
        perform require_read_committed_1();
        -- Sooner than the connection loses its patience.
        perform set_config('lock_timeout', '10s', true);
    end if;
    if p_idempotency is not null then
        -- A subtransaction: keys written before the fault was met are taken back, the caller's own work is not.
        begin
            for v_key in
                select u.key, u.place from unnest(p_idempotency) with ordinality as u (key, place)
                 where u.key is not null order by 1, 2
            loop
                v_told := take_idempotency_1(v_key.key, v_mine[v_key.place], p_args[v_key.place], v_now);
                v_ids[v_key.place] := v_told.id;
                v_outcomes[v_key.place] := v_told.outcome;
                if v_told.outcome = 'reused' then
                    v_reused := least(v_reused, v_key.place);
                end if;
            end loop;
            if v_reused is not null then
                raise exception 'an idempotency key was used before' using errcode = 'DY002';
            end if;
        exception when sqlstate 'DY002' then
            -- What this very call had put under the key is gone again.
            return query
            select (select i.id from idempotency i where i.key = p_idempotency[v_reused] and i.until > v_now),
                   null::timestamptz, 'reused', v_reused;
            return;
        end;
    end if;
    if p_unique is not null then
        for v_key in
            select u.key, u.place, u.live, u.replace
              from unnest(p_unique, p_live, p_replace) with ordinality as u (key, live, replace, place)
             where u.key is not null order by 1, 2
        loop
            continue when v_outcomes[v_key.place] <> 'created';
            v_told := take_unique_1(v_key.key, v_mine[v_key.place], 0, v_key.live, v_key.replace, null, v_mine, null,
                                    not p_own, v_now);
            if v_told.holder is not null then
                -- Also for repeats of this one in the same call.
                v_ids := array_replace(v_ids, v_mine[v_key.place], v_told.holder);
                v_outcomes[v_key.place] := 'duplicate';
                if p_idempotency[v_key.place] is not null then
                    update idempotency i set id = v_told.holder where i.id = v_mine[v_key.place];
                end if;
            elsif v_told.replaced is not null then
                v_replaced := v_replaced || v_told.replaced;
                v_by := v_by || v_mine[v_key.place];
            end if;
        end loop;
    end if;
    with asked as materialized (
        select u.*
          from unnest(v_mine, v_outcomes, p_queues, p_queue_keys, p_suspect_keys, p_tasks, p_task_keys, p_args, p_priorities,
                      p_timeouts, p_attempts, p_tenants, p_tags, p_correlations, p_triggers, p_unique, p_live, p_ordering_keys,
                      p_orderings)
            as u (id, outcome, queue, queue_key, suspect_key, task, task_key, args, priority, timeout, attempts, tenant, tags,
                  correlation_id, trigger, key, live, ordering_key, ordering)
         where u.outcome = 'created'
    ), stored as (
        insert into job (id, queue_key, suspect_key, task_key, enqueued_at, timeout, priority, attempts, queue, task, tenant,
                         correlation_id, tags, trigger, args, extras, unique_key, unique_live, ordering_key, ordering)
        select a.id, a.queue_key, a.suspect_key, a.task_key, v_now, a.timeout * interval '1 second', a.priority, a.attempts,
               a.queue, a.task, coalesce(a.tenant, ''), a.correlation_id, string_to_array(a.tags, E'\n'), a.trigger, a.args,
               case when a.key is null then 0 else 4 end + case when a.ordering is null then 0 else 64 end,
               a.key, a.live, a.ordering_key, a.ordering
          from asked a
    )
    insert into ready (queue, priority, pos, id, task, ready_at)
    select a.queue_key, a.priority, a.id, a.id, a.task_key, v_now from asked a;
    if p_orderings is not null then
        insert into keyed (key, id)
        select u.ordering, u.id from unnest(v_mine, v_outcomes, p_orderings) as u (id, outcome, ordering)
         where u.outcome = 'created' and u.ordering is not null;
    end if;
    if p_tags is not null then
        insert into job_tag (tag, id)
        select distinct t.tag, u.id
          from unnest(v_mine, v_outcomes, p_tags) as u (id, outcome, tags)
         cross join lateral unnest(string_to_array(u.tags, E'\n')) as t (tag)
         where u.outcome = 'created';
    end if;
    if cardinality(v_replaced) > 0 then
        perform replace_waiting_1(v_replaced, v_by, v_now);
    end if;
    perform ring_1();
    return query
    select u.id, case when u.outcome <> 'created' then (select s.run_at from scheduled s where s.id = u.id) end, u.outcome,
           u.place::int
      from unnest(v_ids, v_outcomes) with ordinality as u (id, outcome, place) order by u.place;
end
$$;
