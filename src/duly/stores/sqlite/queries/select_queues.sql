-- Declared queues. Lock: none.
select name, owner from {prefix}_queue order by name
