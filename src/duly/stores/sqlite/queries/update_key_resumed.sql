-- Let a paused ordering key go on. Lock: the write lock. Index: primary key.
update {prefix}_key_head set paused = 0 where key = :key
