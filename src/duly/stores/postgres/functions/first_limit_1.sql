-- The first limit of a task, 0 for none: what its jobs are set aside behind before they are looked at. Lock: none.
-- Index: task_limit_pkey. Differs: PostgreSQL only.
create function {schema}.first_limit_1(p_task bigint) returns bigint
language plpgsql stable as $$
begin
    return coalesce((select l.policy from task_limit l where l.task = p_task order by l.task, l.policy limit 1), 0);
end
$$;
