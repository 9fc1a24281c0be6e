-- Ids of jobs above an edge, oldest first, by the one narrowest index (p_source). Lock: none. Index: the source's by id.
-- Differs: one statement per source in SQLite.
create function {schema}.ids_after_1(p_source text, p_value text, p_edge bigint, p_most int) returns setof bigint
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
begin
    if p_source = 'job' then
        return query select t.id from job t where t.id > p_edge order by t.id limit p_most;
    elsif p_source = 'correlation' then
        return query select t.id from job t where t.correlation_id = p_value and t.id > p_edge order by t.id limit p_most;
    elsif p_source = 'tag' then
        return query select t.id from job_tag t where t.tag = p_value and t.id > p_edge order by t.id limit p_most;
    elsif p_source = 'ready' then
        return query select t.id from ready t where t.id > p_edge order by t.id limit p_most;
    elsif p_source = 'scheduled' then
        return query select t.id from scheduled t where t.id > p_edge order by t.id limit p_most;
    elsif p_source = 'blocked' then
        return query select t.id from blocked t where t.id > p_edge order by t.id limit p_most;
    elsif p_source = 'running' then
        return query select t.id from claimed t where t.id > p_edge order by t.id limit p_most;
    elsif p_source = 'finished' then
        return query select t.id from finished t where t.id > p_edge order by t.id limit p_most;
    elsif p_source = 'dead' then
        return query select t.id from dead t where t.id > p_edge order by t.id limit p_most;
    end if;
end
$$;
