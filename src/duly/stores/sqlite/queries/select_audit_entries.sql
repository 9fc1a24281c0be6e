-- Entries of the audit in a range of ids. Lock: none. Index: primary key.
select id, at, actor, verb, target, reason, detail
from {prefix}_audit_entry
where id between :first and :last
order by id
limit :most
