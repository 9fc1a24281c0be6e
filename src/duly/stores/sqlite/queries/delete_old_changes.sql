-- Forget changes of long ago. Lock: the write lock. Index: the table, changes only.
delete from {prefix}_alert_change where at < :before
