-- Which limits a job has reserved while it waits for others. Lock: the write lock, taken before. Index: incarnation, id.
select key from {prefix}_hold where incarnation = 0 and id = :id and until is null
