-- How limits that somebody has used before stand, for those who want to take them: free is NULL where nothing bounds their
-- number; closed_until is set while nothing starts at all; counted says that holders are kept.
-- Lock: none; a caller that takes some has locked them in an earlier statement. Index: limit_state_pkey and those of
-- limit_terms_1. Differs: none.
create function {schema}.open_limits_1(p_keys bigint[], p_now timestamptz)
returns table (
    key bigint, free int, counted boolean, tat timestamptz, pace interval, burst int, closed_until timestamptz,
    next_at timestamptz)
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    select t.key, t.most - t.held, t.counted, t.tat, t.pace * interval '1 second', t.burst, t.closed_until, t.next_at
      from (select array_agg(s.key) as keys, array_agg(s.name) as names, array_agg(s.policy) as policies
              from unnest(p_keys) as u (key) cross join lateral (
                select s.key, s.name, s.policy from limit_state s where s.key = u.key offset 0) s) s
     cross join lateral limit_terms_1(s.keys, s.names, s.policies, false, p_now) t;
end
$$;
