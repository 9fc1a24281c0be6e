-- Forget answers that have expired, the oldest first. Lock: the write lock. Index: expires_at.
delete from {prefix}_answer where key in (
    select key from {prefix}_answer where expires_at <= :now order by expires_at limit :most
)
