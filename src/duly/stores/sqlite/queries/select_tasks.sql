-- Declared tasks. Lock: none.
select name, queue from {prefix}_task order by name
