-- Say who declares a schedule from now on. Lock: the write lock. Index: primary key.
update {prefix}_schedule set origin = :origin where name = :name
