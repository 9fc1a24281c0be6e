-- Note on a dead letter that an edited job runs in its place. Lock: the write lock. Index: primary key.
update {prefix}_dead set successor = :successor, note = case when note is null then :note else note || '; ' || :note end
where id = :id
