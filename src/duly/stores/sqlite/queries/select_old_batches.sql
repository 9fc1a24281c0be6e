-- Batches that have ended before. Lock: none. Index: finished, one range.
select b.id from {prefix}_batch as b where b.finished_at < :before order by b.finished_at limit :most
