-- The tasks that have blocked jobs for this cause, one index probe each. Lock: none. Index: blocked_cause. Differs: none.
create function {schema}.blocked_tasks_1(p_cause smallint) returns setof bigint
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    v_task bigint := -9223372036854775808;
begin
    loop
        select b.task into v_task from blocked b
         where b.cause = p_cause and b.task > v_task order by b.cause, b.task limit 1;
        exit when not found;
        return next v_task;
    end loop;
end
$$;
