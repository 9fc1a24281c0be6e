-- Deletes dead letters for good; how they ended stays in their idempotency records. One that still owes a follow-up stays
-- until the sweep has paid it.
-- Lock: the dead rows. Index: dead_pkey, owed_pkey, idempotency_id and those of forget_jobs_2.
-- Differs: on SQLite nothing is ever owed.
create function {schema}.purge_3(p_ids bigint[], p_by text, p_reason text, p_now timestamptz) returns setof bigint
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_gone bigint[];
begin
    with gone as (
        delete from dead d
         where d.id = any(p_ids) and (select true from owed o where o.id = d.id limit 1) is null
        returning id, died_at, reason
    ), kept as (
        update idempotency i set status = 'dead', ended_at = g.died_at, result = null, reason = g.reason
          from (select g.*, x.tid from gone g cross join lateral (
                    select k.ctid as tid from idempotency k where k.id = g.id for update skip locked) x) g
         where i.ctid = g.tid
    )
    select array_agg(g.id) into v_gone from gone g;
    if v_gone is not null then
        perform forget_jobs_2(v_gone);
        perform note_jobs_1('purge', v_gone, p_by, p_reason, coalesce(p_now, clock_timestamp()));
    end if;
    return query select unnest(v_gone);
end
$$;
