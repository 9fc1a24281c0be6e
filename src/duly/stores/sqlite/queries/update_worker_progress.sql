-- Note that a worker gets on. Lock: the write lock. Index: primary key.
update {prefix}_worker set progress_at = :now where incarnation = :incarnation
