-- End the hold on one job: this deletion is the fence. Lock: the write lock. Index: id.
delete from {prefix}_claimed where incarnation = :incarnation and id = :id and run = :run
