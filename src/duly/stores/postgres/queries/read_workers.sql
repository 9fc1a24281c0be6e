-- Live workers and how much each holds. Lock: none. Index: claimed_pkey. Differs: none.
select w.incarnation, w.host, w.pid, w.supervisor, w.queues, w.slots,
       (select count(*) from {schema}.claimed c where c.incarnation = w.incarnation), w.started_at,
       extract(epoch from m.now - w.beat_at)::float8, extract(epoch from m.now - w.progress_at)::float8, w.version, w.draining
  from {schema}.worker w cross join (select coalesce(%(now)s::timestamptz, clock_timestamp()) as now) m
 order by w.incarnation
