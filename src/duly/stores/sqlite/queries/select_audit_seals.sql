-- Seals of the audit before one, the newest first. Lock: none. Index: primary key, backwards.
select id, first, last, count, digest, previous, at from {prefix}_audit_seal where id < :before order by id desc limit :most
