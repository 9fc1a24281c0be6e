-- Give an attempt more time. Lock: the write lock. Index: primary key.
update {prefix}_claimed set deadline = deadline + :by
where incarnation = :incarnation and id = :id and run = :run
