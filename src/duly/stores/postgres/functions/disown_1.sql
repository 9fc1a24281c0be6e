-- A supervisor saw its child die, or a worker ends: removes the worker row; what had started is lost (witnessed), the rest
-- interrupted. Lock: the worker row, then its claimed rows. Index: worker_pkey, claimed_pkey. Differs: none.
create function {schema}.disown_1(
    p_incarnation bigint, p_ids bigint[], p_runs int[], p_reason text, p_poison int, p_now timestamptz
) returns int
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_ids bigint[];
    v_events text[];
begin
    perform require_read_committed_1();
    delete from worker where incarnation = p_incarnation;
    -- Rows that a caller's open transaction has ended are left to the sweep, should it roll back.
    select array_agg(x.id), array_agg(case when s.id is null then 'interrupt' else 'lose' end) into v_ids, v_events
      from (select c.id, c.run from claimed c where c.incarnation = p_incarnation
             order by c.incarnation, c.id for update skip locked) x
      left join unnest(p_ids, p_runs) as s (id, run) on s.id = x.id and s.run = x.run;
    if v_ids is null then
        return 0;
    end if;
    return take_back_1(array_fill(p_incarnation, array[cardinality(v_ids)]), v_ids, v_events, p_reason, p_poison, true, v_now);
end
$$;
