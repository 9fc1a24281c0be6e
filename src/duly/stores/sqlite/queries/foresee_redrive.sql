-- What a redrive of these dead letters would meet: how many can run again, since when the first has been dead, the least
-- urgent priority of theirs, and how many have a unique key that a live job holds. Lock: none.
-- Index: dead whole, job by primary key, unique_key by primary key, the state tables by id.
-- Differs: PostgreSQL may look for priorities and keys at those only that died last.
select count(*), min(d.died_at), max(j.priority), count(case when j.unique_key is not null and exists (
           select 1 from {prefix}_unique_key as k
           left join {prefix}_ready as r on r.id = k.id
           left join {prefix}_scheduled as s on s.id = k.id
           left join {prefix}_blocked as b on b.id = k.id
           left join {prefix}_claimed as c on c.id = k.id and k.live = 1
           where k.key = j.unique_key and k.id <> d.id and (c.id is not null or (
               coalesce(r.id, s.id, b.id) is not null
               and coalesce(r.expires_at, s.expires_at, b.expires_at, 9223372036854775807) > :now))
       ) then 1 end)
from {prefix}_dead as d
cross join {prefix}_job as j on j.id = d.id
where d.successor is null
  and (:queue is null or d.queue = :queue)
  and (:task is null or d.task = :task)
  and (:tenant is null or d.tenant = :tenant)
  and (:correlation is null or j.correlation_id = :correlation or (j.correlation_id is null and cast(j.id as text) = :correlation))
  and (:fingerprint is null or d.fingerprint like :fingerprint || '%')
  and (:since is null or j.enqueued_at >= :since)
  and (:until is null or j.enqueued_at < :until)
  and (:tag is null or exists (select 1 from {prefix}_job_tag as t where t.tag = :tag and t.id = d.id))
