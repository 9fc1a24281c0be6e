-- Which of these were asked to drain. Lock: none. Index: worker_pkey. Differs: none.
create function {schema}.draining_1(p_incarnations bigint[]) returns setof bigint
language plpgsql stable security definer
set search_path = {schema}, pg_temp as $$
begin
    return query select w.incarnation from worker w where w.incarnation = any(p_incarnations) and w.draining;
end
$$;
