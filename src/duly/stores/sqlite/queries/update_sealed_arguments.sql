-- Put the same payload under another key in its place. Lock: the write lock. Index: primary key.
update {prefix}_job set args = :new where id = :id and args = :old
