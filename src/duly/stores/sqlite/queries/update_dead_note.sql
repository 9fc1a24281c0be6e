-- Add what a reader must know to the note of a dead letter. Lock: the write lock. Index: primary key.
update {prefix}_dead set note = case when note is null then :note else note || '; ' || :note end where id = :id
