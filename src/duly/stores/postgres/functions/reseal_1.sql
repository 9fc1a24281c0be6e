-- Puts payloads under another key in the place of the same ones; how many still stood there.
-- Lock: the rows. Index: job_pkey, finished_pkey, result_pkey, step_pkey. Differs: SQLite has a statement for each part.
create function {schema}.reseal_1(p_part text, p_ids bigint[], p_names text[], p_old bytea[], p_new bytea[]) returns int
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_done int;
begin
    perform require_read_committed_1();
    if p_part = 'arguments' then
        update job j set args = n.new
          from unnest(p_ids, p_old, p_new) as n (id, old, new) where j.id = n.id and j.args = n.old;
    elsif p_part = 'results' then
        update finished f set result = n.new
          from unnest(p_ids, p_old, p_new) as n (id, old, new) where f.id = n.id and f.result = n.old;
    elsif p_part = 'large results' then
        update result r set result = n.new
          from unnest(p_ids, p_old, p_new) as n (id, old, new) where r.id = n.id and r.result = n.old;
    else
        update step s set value = n.new
          from unnest(p_ids, p_names, p_old, p_new) as n (id, name, old, new)
         where s.id = n.id and s.name = n.name and s.value = n.old;
    end if;
    get diagnostics v_done = row_count;
    return v_done;
end
$$;
