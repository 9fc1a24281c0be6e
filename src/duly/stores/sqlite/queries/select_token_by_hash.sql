-- The token of a text, by its hash. Lock: none. Index: the unique hash.
select id, name, scopes, by, created_at, expires_at, last_used_at, revoked_at from {prefix}_token where hash = :hash
