-- Whether a job waits behind its ordering key. Lock: the write lock, taken before. Index: primary key.
select 1 from {prefix}_blocked where id = :id and gate = :gate and cause = 3
