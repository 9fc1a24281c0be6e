-- End a lease: its row is the lease. Lock: the write lock. Index: primary key.
delete from {prefix}_worker where incarnation = :incarnation
