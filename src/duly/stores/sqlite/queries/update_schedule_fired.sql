-- Move a schedule on and count, unless another worker was faster or it was paused, edited or removed.
-- Lock: the write lock. Index: primary key.
update {prefix}_schedule
set next_at = max(next_at, :next_at), last_at = :last_at, last_id = coalesce(:last_id, last_id),
    fired = fired + :fired, missed = missed + :missed, failure = null, failed_at = null, failures = 0
where name = :name and next_at = :expected and paused = 0
