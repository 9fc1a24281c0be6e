-- How these limits stand: free is NULL where nothing bounds their number; closed_until is set while nothing starts at all;
-- counted says that holders are kept. An override on the instance goes before one on the policy, both before what is declared.
-- Lock: none; a caller that takes some has locked them in an earlier statement. Index: limit_state_pkey, limit_policy_pkey,
-- override_key, hold_pkey. Differs: none.
create function {schema}.open_limits_1(p_keys bigint[], p_now timestamptz)
returns table (
    key bigint, free int, counted boolean, tat timestamptz, pace interval, burst int, closed_until timestamptz,
    next_at timestamptz)
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    select s.key, (f.most - h.held)::int, f.most is not null or p.breaker is not null, s.tat,
           case when o.value ? 'interval' then (o.value ->> 'interval')::float8 else p.interval end * interval '1 second',
           coalesce(case when o.value ? 'burst' then (o.value ->> 'burst')::int else p.burst end, 1),
           greatest(case when s.held_until > p_now then s.held_until end,
                    case when b.state = 'open' then case when s.forced is null then s.breaker_until else 'infinity' end end),
           s.next_at
      from unnest(p_keys) as u (key)
     cross join lateral (
        select s.key, s.name, s.policy, s.tat, s.held_until, s.breaker_state, s.breaker_until, s.forced, s.next_at
          from limit_state s where s.key = u.key offset 0) s
      left join lateral (
        select p.max_running, p.interval, p.burst, p.breaker from limit_policy p where p.key = s.policy offset 0) p on true
     cross join lateral (
        select coalesce(live_override_1(s.key, p_now), case when s.policy <> s.key then live_override_1(s.policy, p_now) end)
               as value offset 0) o
     cross join lateral (
        select case when p.breaker is null then null when s.forced is not null then s.forced
                    when s.breaker_state = 'open' and s.breaker_until <= p_now then 'half-open' else s.breaker_state end as state
        offset 0) b
     cross join lateral (
        select case when s.name like 'lock:%' then 1 when b.state = 'half-open' then least(1, m.most) else m.most end as most
          from (select case when o.value ? 'max_running' then (o.value ->> 'max_running')::int else p.max_running end as most) m
        offset 0) f
     cross join lateral (
        select count(*) as held from hold h
         where f.most is not null and h.key = s.key and (h.until is null or h.until > p_now) offset 0) h;
end
$$;
