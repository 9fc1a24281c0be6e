-- Entries of the audit before one, the newest first. Lock: none. Index: primary key, backwards.
select id, at, actor, verb, target, reason, detail
from {prefix}_audit_entry
where id < :before
  and (:actor is null or actor = :actor)
  and (:verb is null or verb = :verb)
  and (:target is null or target = :target)
  and (:since is null or at >= :since)
  and (:until is null or at < :until)
order by id desc
limit :most
