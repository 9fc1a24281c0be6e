-- Which tasks take limits, and which queues have bounds of their own. Lock: none. Index: none, the tables are small. Differs: SQLite
-- keeps them in memory.
create function {schema}.bounds_1(out tasks bigint[], out queues text[])
language plpgsql stable as $$
begin
    tasks := array(select distinct t.task from task_limit t);
    queues := array(select distinct l.queue from limit_policy l where l.queue is not null);
end
$$;
