-- Give back the key of a request that is in flight. Lock: the write lock. Index: primary key.
delete from {prefix}_answer where key = :key and answer is null
