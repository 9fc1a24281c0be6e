-- Note a number of a kind of upkeep. Lock: the write lock. Index: primary key.
update {prefix}_sweep set position = :position where name = :name
