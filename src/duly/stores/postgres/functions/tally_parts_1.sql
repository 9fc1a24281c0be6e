-- What ended within a span of time, per queue, task and minute.
-- Lock: none. Index: finished_order and dead_order, one range per queue, whose queues are found from the back: at the front
-- stand the dead entries of what was deleted; attempt_ended, audit_entry_at, job_pkey. Differs: none.
create function {schema}.tally_parts_1(p_since timestamptz, p_until timestamptz)
returns table (at timestamptz, queue text, task text, completed bigint, skipped bigint, dead bigint, cancelled bigint,
               shed bigint, failed bigint, lost bigint, timeout bigint, redelivered bigint, redriven bigint, suppressed bigint,
               waited bigint, ran bigint)
language sql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    with recursive finished_in as (
        (select f.queue_key as key from {schema}.finished f
          order by f.queue_key desc, f.finished_at desc, f.id desc limit 1)
         union all
        select (select f.queue_key from {schema}.finished f where f.queue_key < i.key
                 order by f.queue_key desc, f.finished_at desc, f.id desc limit 1)
          from finished_in i where i.key is not null
    ), dead_in as (
        (select d.queue_key as key from {schema}.dead d order by d.queue_key desc, d.died_at desc, d.id desc limit 1)
         union all
        select (select d.queue_key from {schema}.dead d where d.queue_key < i.key
                 order by d.queue_key desc, d.died_at desc, d.id desc limit 1)
          from dead_in i where i.key is not null
    ), part as (
        select f.finished_at as at, f.queue, f.task, f.status as what,
               f.status = 'skipped' and (f.reason = 'stale' or f.reason like 'replaced by job %') as suppressed,
               greatest(extract(epoch from f.started_at - f.enqueued_at) * 1000000, 0)::bigint as waited,
               greatest(extract(epoch from f.finished_at - f.started_at) * 1000000, 0)::bigint as ran
          from finished_in i
         cross join lateral (
            select f.finished_at, f.queue, f.task, f.status, f.reason, f.started_at, f.enqueued_at from {schema}.finished f
             where f.queue_key = i.key and f.finished_at >= p_since and f.finished_at < p_until offset 0) f
         union all
        select d.died_at, d.queue, d.task, 'dead', false, 0, 0
          from dead_in i
         cross join lateral (
            select d.died_at, d.queue, d.task from {schema}.dead d
             where d.queue_key = i.key and d.died_at >= p_since and d.died_at < p_until offset 0) d
         union all
        select a.ended_at, j.queue, j.task, case when a.event = 'fail' and a.error_type = 'Timeout' then 'timeout' else a.event end,
               false, 0, 0
          from {schema}.attempt a
         cross join lateral (select j.queue, j.task from {schema}.job j where j.id = a.id offset 0) j
         where a.ended_at >= p_since and a.ended_at < p_until
           and (a.event in ('fail', 'lose') or (a.event = 'interrupt' and a.started_at is not null))
         union all
        select e.at, j.queue, j.task, 'redrive', false, 0, 0
          from {schema}.audit_entry e
         cross join lateral json_array_elements_text(
            case when e.verb = 'redrive' and json_typeof(e.detail::json -> 'ids') = 'array' then e.detail::json -> 'ids'
                 else '[]'::json end) i (id)
         cross join lateral (
            select j.queue, j.task from {schema}.job j
             where j.id = case when i.id ~ '^[0-9]{1,18}$' then i.id::bigint end offset 0) j
         where e.at >= p_since and e.at < p_until
    )
    select date_trunc('minute', p.at, 'UTC'), p.queue, p.task, count(*) filter (where p.what = 'completed'),
           count(*) filter (where p.what = 'skipped'), count(*) filter (where p.what = 'dead'),
           count(*) filter (where p.what = 'cancelled'), count(*) filter (where p.what = 'shed'),
           count(*) filter (where p.what in ('fail', 'timeout')), count(*) filter (where p.what = 'lose'),
           count(*) filter (where p.what = 'timeout'), count(*) filter (where p.what = 'interrupt'),
           count(*) filter (where p.what = 'redrive'), count(*) filter (where p.suppressed),
           coalesce(sum(p.waited) filter (where p.what = 'completed'), 0)::bigint,
           coalesce(sum(p.ran) filter (where p.what = 'completed'), 0)::bigint
      from part p group by 1, 2, 3
$$;
