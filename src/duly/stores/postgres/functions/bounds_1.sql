-- Which tasks take limits, and which queues have bounds of their own. Lock: none. Index: none, the tables are small. Differs: SQLite
-- keeps them in memory.
create function {schema}.bounds_1(out tasks bigint[], out queues text[])
language plpgsql stable as $$
begin
    tasks := array(select t.task from task_limit t
                   union select key_of_1(substr(o.target, 6)) from override o
                    where o.kind = 'limit' and o.lifted_at is null and o.target like 'task:%' and o.target not like '%#%'
                      and (o.until is null or o.until > clock_timestamp()) order by 1);
    queues := array(select distinct l.queue from limit_policy l where l.queue is not null);
end
$$;
