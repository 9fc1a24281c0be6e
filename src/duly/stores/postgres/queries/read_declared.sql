-- Declared queues with their owners, tasks with their queues. Lock: none. Index: none. Differs: none.
select 'queue', name, owner from {schema}.queue union all select 'task', name, queue from {schema}.task order by 1, 2
