-- Take the key of a request, if it is free. Lock: the write lock. Index: primary key.
insert into {prefix}_answer (key, token, body_hash, at, expires_at)
values (:key, :token, :body_hash, :now, :expires_at)
on conflict (key) do update set token = excluded.token, body_hash = excluded.body_hash, status = 0, answer = null,
    at = excluded.at, expires_at = excluded.expires_at
where expires_at <= excluded.at
