-- Jobs in whatever state, from one statement over all state tables. Lock: none. Index: primary keys and ids.
select
    j.id,
    case when c.id is not null then 'running'
         when r.id is not null then 'ready'
         when s.id is not null then 'scheduled'
         when b.id is not null then 'blocked'
         when d.id is not null then 'dead'
         else f.status end,
    j.queue, j.task, j.tenant, coalesce(c.priority, r.priority, s.priority, b.priority, j.priority), j.tags,
    j.correlation_id, j.args,
    coalesce(c.failed, r.failed, s.failed, b.failed, d.failed, f.failed),
    coalesce(c.lost, r.lost, s.lost, b.lost, d.lost, f.lost),
    coalesce(c.interrupted, r.interrupted, s.interrupted, b.interrupted, d.interrupted, f.interrupted),
    coalesce(c.snoozed, r.snoozed, s.snoozed, b.snoozed, d.snoozed, f.snoozed),
    coalesce(c.run, r.run, s.run, b.run, d.run, f.run),
    j.attempts, j.timeout, j.enqueued_at,
    case when d.id is not null or f.id is not null then j.expires_at
         else coalesce(c.expires_at, r.expires_at, s.expires_at, b.expires_at) end,
    s.run_at, coalesce(c.claimed_at, d.started_at, f.started_at), c.deadline, coalesce(d.died_at, f.finished_at),
    coalesce(c.incarnation, d.incarnation, f.incarnation), coalesce(d.reason, f.reason), coalesce(d.note, f.note),
    coalesce(f.result, res.result),
    d.error_type, d.error_message, d.error_traceback, d.fingerprint,
    p.run, p.done, p."of", p.note, w.id is not null, j."trigger", j.ordering_key,
    case b.cause when 3 then 'key' when 4 then (select g.name from {prefix}_limit_state as g where g.key = b.gate)
         when 1 then 'task' when 2 then 'task' end
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
left join {prefix}_claimed as c on c.id = j.id
left join {prefix}_ready as r on r.id = j.id
left join {prefix}_scheduled as s on s.id = j.id
left join {prefix}_blocked as b on b.id = j.id
left join {prefix}_dead as d on d.id = j.id
left join {prefix}_finished as f on f.id = j.id
left join {prefix}_result as res on res.id = f.id
left join {prefix}_progress as p on p.id = c.id and p.run = c.run
left join {prefix}_wish as w on w.id = c.id
where c.id is not null or r.id is not null or s.id is not null or b.id is not null or d.id is not null or f.id is not null
