-- End the hold on jobs, which is what all fences look at. Lock: the write lock. Index: id.
delete from {prefix}_claimed where incarnation = :incarnation and id in (select value from json_each(:ids))
