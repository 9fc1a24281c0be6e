-- Folds what was counted of batches into their rows, and enqueues what follows those that have come to an end or to their
-- first death. How many batches it looked at: call again until it is 0, for what others left because of our locks.
-- Lock: each batch FOR UPDATE SKIP LOCKED, in a statement of its own before its counts are read; then those of follow_up_2.
-- Whoever adds to a batch holds it FOR SHARE. Index: batch_done_pkey, batch_pkey, released_pkey.
-- Differs: SQLite does it in the transaction of the end.
create function {schema}.finish_batches_1(p_now timestamptz) returns int
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_left bigint[] := '{}';
    v_changed bigint[];
    v_looked int := 0;
    v_id bigint;
begin
    perform require_read_committed_1();
    -- Before anything is looked at: what is left after this is left for a reason.
    delete from released where ctid = any(array(
        select r.ctid from released r
         where r.due = '-infinity' and r.number > coalesce((select s.position from sweep s where s.name = 'words'), 0)
           and r.kind = 3
         limit 1000 for update skip locked));
    -- Each round may have changed the batches around those of the one before.
    loop
        v_changed := array(
            select distinct d.batch from (
                select d.batch from batch_done d where d.batch <> all(v_left) order by d.batch, d.n limit 10000) d);
        exit when v_changed = '{}';
        foreach v_id in array v_changed loop
            perform 1 from batch b where b.id = v_id for update skip locked;
            if found then
                perform settle_batch_1(v_id, v_now);
                v_looked := v_looked + 1;
            else
                v_left := v_left || v_id;
            end if;
        end loop;
    end loop;
    return v_looked;
end
$$;
