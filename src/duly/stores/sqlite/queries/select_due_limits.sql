-- Limits that are worth another look. Lock: none. Index: next, in order.
select key, name from {prefix}_limit_state where next_at is not null and next_at <= :now order by next_at limit :most
