-- Answer a request whose key was taken. Lock: the write lock. Index: primary key.
update {prefix}_answer set status = :status, answer = :answer, expires_at = :expires_at where key = :key and answer is null
