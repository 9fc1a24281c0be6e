-- What bounds these limits, and how they stand. free is NULL where nothing bounds their number; closed_until is set while
-- nothing starts at all. An override on the instance goes before one on a tenant's plan, that before one on the policy, all of
-- them before what is declared; a plan takes the place of a queue's policy.
-- Holders are counted of limits that have a cap; with p_all of all, with NULL of the others only whether there is one.
-- Lock: none. Index: limit_state_pkey, limit_policy_pkey, tenant_pkey, override_key, hold_pkey. Differs: none.
create function {schema}.limit_terms_1(p_keys bigint[], p_names text[], p_policies bigint[], p_all boolean, p_now timestamptz)
returns table (
    key bigint, name text, most int, pace float8, burst int, weight int, counted boolean, held int, tat timestamptz,
    closed_until timestamptz, next_at timestamptz, held_until timestamptz, breaker text, breaker_until timestamptz,
    override bigint)
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    select u.key, u.name, f.most, v.pace, coalesce(v.burst, 1), coalesce(v.weight, 1),
           f.most is not null or p.breaker is not null, h.held::int, s.tat,
           greatest(case when s.held_until > p_now then s.held_until end,
                    case when b.state = 'open' then case when s.forced is null then s.breaker_until else 'infinity' end end,
                    k.until),
           s.next_at, case when s.held_until > p_now then s.held_until end, b.state,
           case when b.state <> 'closed' and s.forced is null then s.breaker_until end, o.id
      from unnest(p_keys, p_names, p_policies) as u (key, name, policy)
      left join lateral (
        select s.tat, s.held_until, s.breaker_state, s.breaker_until, s.forced, s.next_at
          from limit_state s where s.key = u.key offset 0) s on true
      left join lateral (
        select t.name, t.weight, t.max_running, t.interval, t.burst from tenant t
         where u.name like 'tenant:_%=%' and t.name = substr(u.name, position('=' in u.name) + 1) offset 0) t on true
      left join lateral (
        select p.max_running, p.interval, p.burst, p.weight, p.breaker from limit_policy p where p.key = u.policy offset 0) p on true
      left join lateral (
        select o.id, o.value
          from (values (1, u.key), (2, case when t.name is not null then key_of_1('tenant:=' || t.name) end), (3, u.policy))
            as c (rank, key)
         cross join lateral (
            select o.id, o.value from override o
             where o.key = c.key and o.kind = 'limit' and o.lifted_at is null and (o.until is null or o.until > p_now)
             order by o.key desc, o.id desc limit 1) o
         order by c.rank limit 1) o on true
      left join lateral (
        select coalesce(o.until, 'infinity') as until from override o
         where u.name like 'block:%' and o.id = substr(u.name, 7)::bigint and o.lifted_at is null
           and (o.until is null or o.until > p_now) offset 0) k on true
     cross join lateral (
        select case when o.value ? 'max_running' then (o.value ->> 'max_running')::int
                    when t.name is not null then t.max_running else p.max_running end as most,
               case when o.value ? 'interval' then (o.value ->> 'interval')::float8
                    when t.name is not null then t.interval else p.interval end as pace,
               case when o.value ? 'burst' then (o.value ->> 'burst')::int
                    when t.name is not null then t.burst else p.burst end as burst,
               case when o.value ? 'weight' then (o.value ->> 'weight')::int
                    when t.name is not null then t.weight else p.weight end as weight
        offset 0) v
     cross join lateral (
        select case when p.breaker is null then null when s.forced is not null then s.forced
                    when s.breaker_state = 'open' and s.breaker_until <= p_now then 'half-open'
                    else coalesce(s.breaker_state, 'closed') end as state offset 0) b
     cross join lateral (
        select case when u.name like 'lock:%' then 1 when b.state = 'half-open' then least(1, v.most) else v.most end as most
        offset 0) f
     cross join lateral (
        select count(*) as held from (
            select 1 from hold h
             where (p_all is distinct from false or f.most is not null) and h.key = u.key and (h.until is null or h.until > p_now)
             limit case when p_all is null and f.most is null then 1 end) h) h;
end
$$;
