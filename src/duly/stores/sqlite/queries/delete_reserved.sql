-- Give back what a job has reserved and does not need. Lock: the write lock. Index: incarnation, id.
delete from {prefix}_hold where incarnation = 0 and id = :id and until is null
