-- Take the head of a lane up to the last row read. Lock: the write lock. Index: primary key, one range.
-- Differs: PostgreSQL deletes what it could lock.
delete from {prefix}_ready
where queue = :queue and tenant = :tenant and (priority, pos) <= (:priority, :pos)
