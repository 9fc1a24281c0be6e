-- Forget what was counted before of one state. Lock: the write lock. Index: primary key, one range.
delete from {prefix}_depth where state = :state
