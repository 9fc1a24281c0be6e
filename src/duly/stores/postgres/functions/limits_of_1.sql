-- The limits that these jobs take, in the order in which they are tried: blocks of their arguments, then those of their tasks by
-- key, one for each value of an argument that has some. A value that is missing or null takes none.
-- Lock: none. Index: job_pkey, task_limit_pkey, override_key, limit_policy_queue. Differs: SQLite reads the arguments in Python.
create function {schema}.limits_of_1(p_ids bigint[]) returns table (id bigint, key bigint, name text, policy bigint)
language plpgsql as $$
#variable_conflict use_column
begin
    -- Most claims meet ordering keys only.
    if exists (select 1 from limit_policy p where p.name like 'block:%') then
        return query
        select u.id, p.key, p.name, p.key
          from unnest(p_ids) as u (id)
         cross join lateral (select j.queue, j.task, j.tenant, j.tags, j.args from job j where j.id = u.id offset 0) j
         cross join lateral (
            select p.key, p.name from limit_policy p where p.queue = j.queue and p.name like 'block:%' offset 0) p
         cross join lateral (
            select o.value from override o where o.id = substr(p.name, 7)::bigint offset 0) o
         where (not o.value ? 'task' or o.value ->> 'task' = j.task)
           and (not o.value ? 'tenant' or o.value ->> 'tenant' = j.tenant)
           and (not o.value ? 'tag' or coalesce(o.value ->> 'tag' = any(j.tags), false))
           and (not o.value ? 'condition' or blocks_1(j.args, o.value -> 'condition'))
         order by 1, 2;
    end if;
    if exists (select 1 from task_limit) or exists (select 1 from override o where o.kind = 'limit' and o.lifted_at is null) then
        return query
        select u.id, case when n.name = l.name then l.policy else key_of_1(n.name) end, n.name, l.policy
          from unnest(p_ids) as u (id)
         cross join lateral (select j.task, j.task_key, j.args from job j where j.id = u.id offset 0) j
         cross join lateral (
            select t.policy, t.name, t.argument from task_limit t where t.task = j.task_key
            -- An override may bound a task for which nothing is declared.
            union select o.key, o.target, null from override o
                   where o.key = key_of_1('task:' || j.task) and o.kind = 'limit' and o.lifted_at is null offset 0) l
         cross join lateral (
            select case when l.argument is null then l.name else l.name || '=' || argument_1(j.args, l.argument) end as name
            offset 0) n
         where n.name is not null order by 1, 2;
    end if;
end
$$;
