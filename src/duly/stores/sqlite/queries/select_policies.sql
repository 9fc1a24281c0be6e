-- What is declared of queues and tasks. Lock: none. A row per name.
select 'queue', name, owner, keep, keep_dead from {prefix}_queue
union all
select 'task', name, queue, priority, expires from {prefix}_task
