-- Let a schedule fire no more until it is resumed. Lock: the write lock. Index: primary key.
update {prefix}_schedule set paused = 1 where name = :name
