-- What happened in a span of time. Lock: none. Index: tally_pkey. Differs: none.
create function {schema}.tallies_1(p_span int, p_since timestamptz, p_until timestamptz, p_queues text[], p_tasks text[])
returns setof {schema}.tally
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select t.* from tally t
     where t.span = p_span and t.at >= p_since and t.at < coalesce(p_until, 'infinity')
       and (p_queues is null or t.queue = any(p_queues)) and (p_tasks is null or t.task = any(p_tasks))
     order by t.at, t.queue collate "C", t.task collate "C"
$$;
