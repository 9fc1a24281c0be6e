-- Whether a dead letter is there that no edited job runs in the place of. Lock: the write lock, taken before.
-- Index: primary key.
select d.id from {prefix}_dead as d where d.id = :id and d.successor is null
