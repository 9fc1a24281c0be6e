-- Ends claims that nobody will end: running -> ready as lost or interrupted, dead as poison, cancelled when wished.
-- p_events says lose or interrupt for each; a witnessed loss convicts at p_poison, any other only a job that ran alone.
-- Lock: the caller has locked the claimed rows in an earlier statement. Index: claimed_pkey. Differs: as apply_ends_1.
create function {schema}.take_back_1(
    p_incarnations bigint[], p_ids bigint[], p_events text[], p_reason text, p_poison int, p_witnessed boolean,
    p_now timestamptz
) returns int
language plpgsql as $$
declare
    v_moved int := 0;
begin
    with held as materialized (
        select u.incarnation, u.id, u.event, c.run, c.failed, c.snoozed, c.claimed_at,
               case when u.event = 'lose' then c.lost + 1 else c.lost end as lost,
               case when u.event = 'lose' then 0 else c.interrupted + 1 end as interrupted,
               u.event = 'lose' and c.lost + 1 >= p_poison and (p_witnessed or c.lost >= 1) as poison
          from unnest(p_incarnations, p_ids, p_events) as u (incarnation, id, event)
         cross join lateral (
            select c.run, c.failed, c.lost, c.interrupted, c.snoozed, c.claimed_at from claimed c
             where c.incarnation = u.incarnation and c.id = u.id offset 0) c
         order by u.incarnation, u.id
    ), listed as (
        select array_agg(incarnation) as incarnations, array_agg(id) as ids, array_agg(run) as runs,
               array_agg(event) as events, array_agg(case when poison then 'dead' else 'ready' end) as states,
               array_agg(failed) as failed, array_agg(lost) as lost, array_agg(interrupted) as interrupted,
               array_agg(snoozed) as snoozed,
               array_agg(case when poison then 'poison: its worker was lost ' || lost || ' times' else p_reason end) as reasons,
               array_agg(case when event = 'lose' then extract(epoch from p_now - claimed_at)::float8 end) as elapsed
          from held
    )
    select coalesce(max(cardinality(l.ids)), 0) - count(a.id) into v_moved
      from listed l left join lateral apply_ends_1(
        l.incarnations, l.ids, l.runs, l.events, l.states, l.failed, l.lost, l.interrupted, l.snoozed, null, null, l.reasons,
        null, null, null, null, null, l.elapsed, false, p_now) a on true
     where l.ids is not null;
    return v_moved;
end
$$;
