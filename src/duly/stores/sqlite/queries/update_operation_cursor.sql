-- Move a running bulk act on, unless another worker was faster. Lock: the write lock. Index: primary key.
update {prefix}_operation
set "cursor" = :cursor, done = done + :done, skipped = skipped + :skipped,
    state = case when :ended then 'done' else state end, ended_at = case when :ended then :now end
where id = :id and state = 'running' and ("cursor" < :cursor or (:ended and "cursor" = :cursor))
