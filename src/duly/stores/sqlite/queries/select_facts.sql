-- What stands around one job: how many are ready before it in its lane and before it in its ordering key, who serves its queue
-- and knows its task, who owns its key. Lock: none, a snapshot. Index: ready by id and primary key, keyed, key_head.
select
    (select count(*) from (
        select 1 from {prefix}_ready as r
        cross join {prefix}_ready as o on o.queue = r.queue and o.tenant = r.tenant
            and (o.priority, o.pos) < (r.priority, r.pos)
        where r.id = :id limit :most)),
    (select count(*) from {prefix}_worker as w
     where not w.draining and exists (select 1 from json_each(w.queues) as q where q.value = :queue)),
    (select count(*) from {prefix}_worker as w
     where not w.draining and exists (select 1 from json_each(w.queues) as q where q.value = :queue)
       and exists (select 1 from json_each(w.tasks) as t where t.key = :task)),
    (select h.id from {prefix}_key_head as h where h.key = :key),
    coalesce((select h.paused from {prefix}_key_head as h where h.key = :key), 0),
    (select count(*) from (select 1 from {prefix}_keyed as k where k.key = :key and k.id < :id limit :most))
