-- Whether a live token has this name, or any token this hash. Lock: the write lock. Index: the table, tokens only.
select exists (
    select 1 from {prefix}_token
    where hash = :hash or (name = :name and revoked_at is null and (expires_at is null or expires_at > :now))
)
