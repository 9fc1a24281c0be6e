-- What is kept under the key of a request. Lock: none. Index: primary key.
select key, token, body_hash, at, expires_at, status, answer from {prefix}_answer where key = :key and expires_at > :now
