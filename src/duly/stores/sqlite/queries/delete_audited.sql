-- The end of an audited job is written; 1, unless somebody else did. Lock: the write lock. Index: primary key.
delete from {prefix}_audited where id = :id
