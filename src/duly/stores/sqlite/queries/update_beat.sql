-- Count a heartbeat, without a clock test. Lock: the write lock. Index: primary key.
update {prefix}_worker set beat = beat + 1, beat_at = :now
where incarnation in (select value from json_each(:incarnations))
returning incarnation
