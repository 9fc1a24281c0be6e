-- Limits as they stand: those named, else those with a policy or in use, by name. At most 10,000 that wait are counted.
-- Lock: none. Index: limit_policy_name_key, blocked_gate and those of limit_terms_1. Differs: none.
create function {schema}.limits_1(p_names text[], p_most int, p_now timestamptz)
returns table (
    name text, most int, pace float8, burst int, held int, waiting int, next_at timestamptz, held_until timestamptz,
    held_by text, held_reason text, breaker text, breaker_until timestamptz, override bigint)
language plpgsql stable security definer
set search_path = {schema}, pg_temp as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_names text[] := coalesce(p_names, array(
        select x.name from (select p.name from limit_policy p union select s.name from limit_state s
                             where exists (select 1 from hold h where h.key = s.key)
                                or exists (select 1 from blocked b where b.gate = s.key)
                                or s.held_until > v_now or s.tat > v_now) x
         order by x.name limit p_most));
begin
    return query
    select t.name, case when t.name like 'lock:%' then null else t.most end, t.pace, t.burst, t.held, w.waiting::int,
           nullif(nullif(greatest(t.closed_until, case when greatest(t.tat, v_now) - (t.burst - 1) * t.pace * interval '1 second' > v_now
                                 then t.tat - (t.burst - 1) * t.pace * interval '1 second' end), 'infinity'), '-infinity'),
           t.held_until, s.held_by, s.held_reason, t.breaker, t.breaker_until, t.override
      from (select array_agg(key_of_1(n) order by place) as keys, array_agg(key_of_1(policy_of_1(n)) order by place) as policies
              from unnest(v_names) with ordinality as u (n, place)) k
     cross join lateral limit_terms_1(k.keys, v_names, k.policies, true, v_now) t
      left join lateral (
        select s.held_by, s.held_reason from limit_state s where s.key = t.key offset 0) s on true
     cross join lateral (
        select count(*) as waiting from (
            select 1 from blocked b where b.gate = t.key and b.cause = 4 limit 10000) b offset 0) w;
end
$$;
