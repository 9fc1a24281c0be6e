-- What people say of groups of dead letters, and when the first of a fixed one died since.
-- Lock: none. Index: the table, groups only; dead by queue and time, what has died there since.
select g.fingerprint, g.queue, g.task, g.state, g.owner, g.note, g.by, g.at, g.regressed_at,
       case when g.state = 'fixed' then (
           select d.died_at from {prefix}_dead as d
           where d.queue = g.queue and d.died_at > g.at and d.task = g.task and coalesce(d.fingerprint, '') = g.fingerprint
           order by d.died_at limit 1
       ) end
from {prefix}_dead_group as g
where (:fingerprints is null or g.fingerprint in (select value from json_each(:fingerprints)))
order by g.at desc, g.fingerprint, g.queue, g.task
limit :most
