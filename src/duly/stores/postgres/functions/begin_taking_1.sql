-- Locks these limits and reads how they stand, in this order. Lock: those of lock_limits_1. Index: hold_id and those of
-- open_limits_1. Differs: SQLite needs no lock.
create function {schema}.begin_taking_1(
    p_keys bigint[], p_names text[], p_policies bigint[], p_ids bigint[], p_now timestamptz, out taking {schema}.taking_1)
language plpgsql as $$
declare
    v_mine bigint[] := lock_limits_1(p_keys, p_names, p_policies, p_now);
begin
    select array_agg(o.key), array_agg(o.free), array_agg(o.counted), array_agg(o.tat), array_agg(o.pace), array_agg(o.burst),
           array_agg(o.closed_until)
      into taking.keys, taking.free, taking.counted, taking.tat, taking.pace, taking.burst, taking.closed
      from open_limits_1(v_mine, p_now) o;
    select array_agg(h.key), array_agg(h.id) into taking.kept_keys, taking.kept_ids
      from unnest(p_ids) as u (id) cross join lateral (
        select h.key, h.id from hold h where h.id = u.id and h.incarnation = 0 offset 0) h;
end
$$;
