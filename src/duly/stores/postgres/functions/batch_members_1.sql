-- Jobs and their batches: those of one batch after an id, or the ones asked for.
-- Lock: none. Index: job_batch, job_pkey. Differs: none.
create function {schema}.batch_members_1(p_batch bigint, p_after bigint, p_most int, p_ids bigint[])
returns table (id bigint, batch bigint)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    (select j.id, j.batch from job j where j.batch = p_batch and j.id > p_after order by j.id limit p_most)
     union all
    select j.id, j.batch from unnest(p_ids) as u (id) join job j on j.id = u.id where j.batch is not null
$$;
