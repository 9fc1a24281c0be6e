-- Which limits the jobs of each task take. Lock: none. A row per limit of a task.
select task, name, argument from {prefix}_task_limit order by task, name
