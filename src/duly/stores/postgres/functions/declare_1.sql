-- Records declared queues and tasks; the newest word wins. Lock: their rows, by name. Index: queue_pkey, task_pkey.
-- Differs: none.
create function {schema}.declare_1(p_queues text[], p_keys bigint[], p_owners text[], p_tasks text[], p_task_queues text[])
returns void
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    insert into queue as q (name, key, owner)
    select u.name, u.key, u.owner from unnest(p_queues, p_keys, p_owners) as u (name, key, owner) order by u.name
        on conflict (name) do update set owner = excluded.owner where q.owner <> excluded.owner;
    insert into task as t (name, queue)
    select u.name, u.queue from unnest(p_tasks, p_task_queues) as u (name, queue) order by u.name
        on conflict (name) do update set queue = excluded.queue where t.queue <> excluded.queue;
end
$$;
