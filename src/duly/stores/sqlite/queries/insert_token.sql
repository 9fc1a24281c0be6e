-- Keep a new token. Lock: the write lock. Index: primary key, the unique hash.
insert into {prefix}_token (name, hash, scopes, by, created_at, expires_at)
values (:name, :hash, :scopes, :by, :now, :expires_at)
returning id
