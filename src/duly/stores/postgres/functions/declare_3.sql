-- Records what a release of an App declares, as declare_2, and what bounds its queues and tasks. p_bounds has the queues'
-- policies by name; limits of the origin that are no longer declared are removed. False, and nothing is changed, when a later
-- release of the origin has declared.
-- Lock: declare_2's. Index: the tables' primary keys. Differs: SQLite has one writer.
create function {schema}.declare_3(
    p_origin text, p_release text, p_queues text[], p_owners text[], p_keep float8[], p_keep_dead float8[], p_tasks text[],
    p_task_queues text[], p_priorities int[], p_expires float8[], p_schedules text[], p_definitions jsonb,
    p_first timestamptz[], p_bounds jsonb, p_limits jsonb, p_task_limits jsonb, p_now timestamptz
) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
#variable_conflict use_column
declare
    v_changed boolean;
begin
    if not declare_2(p_origin, p_release, p_queues, p_owners, p_keep, p_keep_dead, p_tasks, p_task_queues, p_priorities,
                     p_expires, p_schedules, p_definitions, p_first, p_now) then
        return false;
    end if;
    update queue q set fair = b.fair, ordering = b.ordering, serialise = b.serialise,
           wait_target = b.wait_target * interval '1 second', max_depth = b.max_depth,
           max_age = b.max_age * interval '1 second', when_full = b.when_full, importance = b.importance
      from jsonb_to_recordset(p_bounds) as b (
            name text, fair boolean, ordering text, serialise boolean, wait_target float8, max_depth int, max_age float8,
            when_full text, importance int)
     where q.name = b.name
       and (q.fair, q.ordering, q.serialise, q.wait_target, q.max_depth, q.max_age, q.when_full, q.importance)
           is distinct from (b.fair, b.ordering, b.serialise, b.wait_target * interval '1 second', b.max_depth,
                             b.max_age * interval '1 second', b.when_full, b.importance);
    delete from limit_policy p where p.origin = p_origin
       and not exists (select 1 from jsonb_array_elements(p_limits) l where l ->> 'name' = p.name);
    v_changed := found;
    insert into limit_policy as p (key, name, max_running, interval, burst, breaker, origin, queue)
    select key_of_1(l.name), l.name, l.max_running, l.interval, l.burst, l.breaker, p_origin,
           case when l.name like 'queue:%' then substr(l.name, 7) when l.name like 'tenant:%' then substr(l.name, 8) end
      from jsonb_to_recordset(p_limits) as l (
            name text, max_running int, interval float8, burst int, breaker jsonb)
     order by l.name
        on conflict (key) do update set max_running = excluded.max_running, interval = excluded.interval,
                                        burst = excluded.burst, breaker = excluded.breaker, origin = excluded.origin
         where (p.max_running, p.interval, p.burst, p.breaker, p.origin)
               is distinct from (excluded.max_running, excluded.interval, excluded.burst, excluded.breaker, excluded.origin);
    v_changed := v_changed or found;
    -- An override bounds its queue also where nothing is declared any more.
    insert into limit_policy (key, name, origin, queue)
    select distinct o.key, o.target, '', substr(o.target, 7) from override o
     where o.kind = 'limit' and o.target like 'queue:%' and o.lifted_at is null
       and (o.until is null or o.until > coalesce(p_now, clock_timestamp()))
        on conflict do nothing;
    delete from task_limit t
     where t.task = any(array(
            select key_of_1(u) from unnest(p_tasks) u
             union all select key_of_1(l.task) from jsonb_to_recordset(p_task_limits) as l (task text)))
       and not exists (select 1 from jsonb_to_recordset(p_task_limits) as l (task text, policy text)
                        where t.task = key_of_1(l.task) and t.name = l.policy);
    v_changed := v_changed or found;
    insert into task_limit as t (task, policy, name, argument)
    select key_of_1(l.task), key_of_1(l.policy), l.policy, l.argument
      from jsonb_to_recordset(p_task_limits) as l (task text, policy text, argument text) order by l.task, l.policy
        on conflict (task, policy) do update set argument = excluded.argument
         where t.argument is distinct from excluded.argument;
    if v_changed then
        perform tell_bounds_1();
        insert into released (due, kind, key)
        select '-infinity'::timestamptz, 2, g.gate from waited_gates_1() g where g.cause = 4;
        perform ring_1();
    end if;
    return true;
end
$$;
