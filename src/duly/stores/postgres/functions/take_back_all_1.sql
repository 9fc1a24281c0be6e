-- Takes back as lost whatever these incarnations hold; their worker rows are gone or locked by the caller. A row that a
-- caller's open transaction has ended is left alone: if that rolls back, the sweep finds it without a worker.
-- Lock: the claimed rows FOR UPDATE SKIP LOCKED, by (incarnation, id), in a statement of its own. Index: claimed_pkey.
-- Differs: none.
create function {schema}.take_back_all_1(p_incarnations bigint[], p_reason text, p_poison int, p_now timestamptz)
returns int
language plpgsql as $$
declare
    v_incarnations bigint[];
    v_ids bigint[];
begin
    select array_agg(x.incarnation), array_agg(x.id) into v_incarnations, v_ids
      from unnest(p_incarnations) as u (incarnation) cross join lateral (
        select c.incarnation, c.id from claimed c where c.incarnation = u.incarnation
         order by c.incarnation, c.id for update skip locked) x;
    if v_ids is null then
        return 0;
    end if;
    return take_back_1(v_incarnations, v_ids, array_fill('lose'::text, array[cardinality(v_ids)]), p_reason, p_poison, false,
                       p_now);
end
$$;
