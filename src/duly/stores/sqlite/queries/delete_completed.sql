-- End the hold on jobs that are recorded as ended. Lock: the write lock. Index: id.
delete from {prefix}_claimed where incarnation = :incarnation and id in (select value from json_each(:ids))
