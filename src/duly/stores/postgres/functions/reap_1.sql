-- Removes workers whose beat is as watched, and takes back what they held: running -> ready as lost, dead as poison when
-- the job ran alone, cancelled when wished. In two statements: a claim that held the worker row when the first snapshot
-- was taken has committed by then, and only a new snapshot sees what it claimed.
-- Lock: worker rows FOR UPDATE SKIP LOCKED, then their claimed rows. Index: worker_pkey, claimed_pkey. Differs: one writer.
create function {schema}.reap_1(p_incarnations bigint[], p_beats bigint[], p_poison int, p_now timestamptz) returns int
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_gone bigint[];
begin
    perform require_read_committed_1();
    with gone as (
        delete from worker where ctid = any(array(
            select x.tid from unnest(p_incarnations, p_beats) as u (incarnation, beat) cross join lateral (
                select w.ctid as tid from worker w
                 where w.incarnation = u.incarnation and w.beat = u.beat for update skip locked) x))
        returning incarnation
    )
    select array_agg(g.incarnation order by g.incarnation) into v_gone from gone g;
    return take_back_all_1(v_gone, 'its worker''s lease lapsed', p_poison, v_now);
end
$$;
