-- What is declared of tasks. Lock: none. A row per name.
select name, queue, priority, expires from {prefix}_task
