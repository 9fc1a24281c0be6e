-- Put the same payload under another key in its place. Lock: the write lock. Index: primary key.
update {prefix}_finished set result = :new where id = :id and result = :old
