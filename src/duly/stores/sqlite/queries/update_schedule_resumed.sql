-- Let a paused schedule go on from its next due time. Lock: the write lock. Index: primary key.
update {prefix}_schedule set paused = 0, next_at = max(next_at, :next_at) where name = :name and paused = 1
