-- Counts jobs that a full queue has turned away, of one kind (1 refused, 2 shed): anew after an hour without any.
-- Lock: the write lock. Index: primary key. Differs: turn_away in PostgreSQL takes many queues.
insert into {prefix}_turned_away (queue, kind, jobs, since, at)
values (:queue, :kind, :jobs, :now, :now)
on conflict (queue, kind) do update
set jobs = case when at < :now - :hour then 0 else jobs end + excluded.jobs,
    since = case when at < :now - :hour then excluded.since else since end,
    at = excluded.at
