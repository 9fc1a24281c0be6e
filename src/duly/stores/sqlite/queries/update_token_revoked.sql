-- Revoke a token. Lock: the write lock. Index: primary key.
update {prefix}_token set revoked_at = :now where id = :id and revoked_at is null returning name
