-- The letter of a group that died last. Lock: none. Index: fingerprint.
select d.error_type, d.error_message, d.reason
from {prefix}_dead as d
where d.fingerprint is :fingerprint and d.queue = :queue and d.task = :task and d.died_at = :died_at
order by d.id desc
limit 1
