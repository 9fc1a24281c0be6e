-- Put the same value under another key in its place. Lock: the write lock. Index: primary key.
update {prefix}_step set value = :new where id = :id and name = :name and value = :old
