-- The death of an audited job is written; 1, unless somebody else did. Lock: the write lock. Index: primary key.
update {prefix}_audited set dead_run = :run where id = :id and dead_run is not :run
