-- The version of a job with a unique key. Lock: the write lock. Index: primary key.
select version from {prefix}_job where id = :id
