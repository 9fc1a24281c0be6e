-- Every token, the newest first. Lock: none. Index: primary key.
select id, name, scopes, by, created_at, expires_at, last_used_at, revoked_at from {prefix}_token order by id desc
