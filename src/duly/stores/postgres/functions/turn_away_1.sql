-- Counts jobs that full queues have turned away, of one kind (1 refused, 2 shed): anew after an hour without any.
-- Lock: rows of turned_away, in the order of their keys. Index: turned_away_pkey. Differs: upsert_turned_away.
create function {schema}.turn_away_1(p_queues bigint[], p_kind int, p_jobs bigint[], p_now timestamptz) returns void
language sql security definer
set search_path = {schema}, pg_temp as $$
    insert into turned_away as t (queue, kind, jobs, since, at)
    select u.queue, p_kind, u.jobs, m.now, m.now
      from unnest(p_queues, p_jobs) as u (queue, jobs), (select coalesce(p_now, clock_timestamp()) as now) m
     where u.jobs > 0
     order by u.queue
        on conflict (queue, kind) do update
       set jobs = case when t.at < excluded.at - interval '1 hour' then 0 else t.jobs end + excluded.jobs,
           since = case when t.at < excluded.at - interval '1 hour' then excluded.since else t.since end,
           at = excluded.at
$$;
