-- Seals of the audit after one. Lock: none. Index: primary key.
select id, first, last, count, digest, previous, at from {prefix}_audit_seal where id > :after order by id limit :most
