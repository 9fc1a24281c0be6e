-- The next rows of a part, with the payloads of those that are encrypted. Lock: none.
-- Index: job_pkey, finished_pkey, result_pkey, step_pkey. Differs: SQLite has a statement for each part.
create function {schema}.sealed_1(p_part text, p_prefix bytea, p_after bigint, p_after_name text, p_most int)
returns table (id bigint, name text, queue text, task text, tenant text, data bytea)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
begin
    if p_part = 'arguments' then
        return query select j.id, ''::text, j.queue, j.task, j.tenant,
                            case when substr(j.args, 1, length(p_prefix)) = p_prefix then j.args end
                       from job j where j.id > p_after order by j.id limit p_most;
    elsif p_part = 'results' then
        return query select f.id, ''::text, f.queue, f.task, f.tenant,
                            case when substr(f.result, 1, length(p_prefix)) = p_prefix then f.result end
                       from finished f where f.id > p_after order by f.id limit p_most;
    elsif p_part = 'large results' then
        return query select r.id, ''::text, ''::text, ''::text, ''::text,
                            case when substr(r.result, 1, length(p_prefix)) = p_prefix then r.result end
                       from result r where r.id > p_after order by r.id limit p_most;
    else
        return query select s.id, s.name, ''::text, ''::text, ''::text,
                            case when substr(s.value, 1, length(p_prefix)) = p_prefix then s.value end
                       from step s where (s.id, s.name) > (p_after, p_after_name) order by s.id, s.name limit p_most;
    end if;
end
$$;
