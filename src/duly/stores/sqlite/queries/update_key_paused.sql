-- Pause an ordering key, if the job owns it. Lock: the write lock. Index: primary key.
update {prefix}_key_head set paused = 1 where key = :key and id = :id
