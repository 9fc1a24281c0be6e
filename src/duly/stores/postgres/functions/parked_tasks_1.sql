-- Names of tasks with jobs parked as unknown. Lock: none. Index: blocked_cause, job_pkey. Differs: none.
create function {schema}.parked_tasks_1() returns setof text
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    v_task bigint;
begin
    for v_task in select t from blocked_tasks_1(1::smallint) t loop
        return query
        select j.task from job j where j.id = (
            select b.id from blocked b where b.cause = 1 and b.task = v_task order by b.pos limit 1);
    end loop;
end
$$;
