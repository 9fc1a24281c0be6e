-- Note that tokens were used. Lock: the write lock. Index: primary key.
update {prefix}_token set last_used_at = :now
where id in (select value from json_each(:ids)) and (last_used_at is null or last_used_at <= :before)
