-- Let the jobs of a task take a limit. Lock: the write lock. Index: primary key.
insert into {prefix}_task_limit (task, name, argument) values (:task, :name, :argument)
on conflict (task, name) do update set argument = excluded.argument
