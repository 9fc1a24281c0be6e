-- Ask a worker to end. Lock: the write lock. Index: primary key.
update {prefix}_worker set draining = 1 where incarnation = :incarnation
