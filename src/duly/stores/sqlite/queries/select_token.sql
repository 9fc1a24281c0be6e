-- Whether an attempt is live. Lock: the write lock, taken before. Index: primary key.
select 1 from {prefix}_claimed where incarnation = :incarnation and id = :id and run = :run
