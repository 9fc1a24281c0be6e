-- End an override that holds. Lock: the write lock. Index: primary key.
update {prefix}_override set lifted_at = :now
where id = :id and lifted_at is null and (until is null or until > :now)
returning target
