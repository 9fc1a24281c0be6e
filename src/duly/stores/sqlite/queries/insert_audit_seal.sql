-- Seal entries of the audit. Lock: the write lock. Index: primary key.
insert into {prefix}_audit_seal (id, first, last, count, digest, previous, at)
values (:id, :first, :last, :count, :digest, :previous, :at)
