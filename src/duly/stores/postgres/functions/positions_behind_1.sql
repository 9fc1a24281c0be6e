-- Sequences that stand below numbers already given out, as after a failover to a lagging standby or a careless restore.
-- Lock: none. Index: job_pkey, worker_pkey. Differs: PostgreSQL only.
create function {schema}.positions_behind_1() returns table (name text, highest bigint)
language plpgsql stable security definer
set search_path = {schema}, pg_temp as $$
#variable_conflict use_column
begin
    return query
    select 'pos', x.highest from pos s, (select max(j.id) as highest from job j) x
     where x.highest > s.last_value
    union all
    select 'incarnation', x.highest from incarnation s, (select max(w.incarnation) as highest from worker w) x
     where x.highest > s.last_value;
end
$$;
