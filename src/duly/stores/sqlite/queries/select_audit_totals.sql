-- Entries of the audit, those that seals count, and those behind the last seal. Lock: none. Index: both tables whole.
select (select count(*) from {prefix}_audit_entry),
       (select coalesce(sum(count), 0) from {prefix}_audit_seal),
       (select count(*) from {prefix}_audit_entry where id > (select coalesce(max(last), 0) from {prefix}_audit_seal))
