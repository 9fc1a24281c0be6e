-- What is declared of how much these queues may hold, and what they have turned away within the hour.
-- Lock: none. Index: turned_away_pkey; a row per declared queue. Differs: select_pressures.
create function {schema}.pressures_1(p_queues text[], p_now timestamptz)
returns table (name text, max_depth int, max_age float8, when_full text, importance int, wait_target float8, refused bigint,
               refused_at timestamptz, shed bigint, shed_at timestamptz)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select u.name, q.max_depth, extract(epoch from q.max_age)::float8, q.when_full, q.importance,
           extract(epoch from q.wait_target)::float8, r.jobs, r.at, s.jobs, s.at
      from unnest(p_queues) as u (name)
      left join queue q on q.name = u.name
      left join turned_away r on r.queue = key_of_1(u.name) and r.kind = 1
                             and r.at > coalesce(p_now, clock_timestamp()) - interval '1 hour'
      left join turned_away s on s.queue = key_of_1(u.name) and s.kind = 2
                             and s.at > coalesce(p_now, clock_timestamp()) - interval '1 hour'
$$;
