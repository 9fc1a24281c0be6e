-- Keep what went wrong at a due time, unless another worker was faster or it was paused, edited or removed.
-- Lock: the write lock. Index: primary key.
update {prefix}_schedule
set failure = :failure, failed_at = :now, failures = failures + 1
where name = :name and next_at = :expected and paused = 0
