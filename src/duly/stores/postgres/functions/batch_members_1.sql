-- Jobs and their batches: those of one batch after an id, or the ones asked for.
-- Lock: none. Index: batch_member_pkey, job_pkey. Differs: none.
create function {schema}.batch_members_1(p_batch bigint, p_after bigint, p_most int, p_ids bigint[])
returns table (id bigint, batch bigint)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    (select m.id, m.batch from batch_member m where m.batch = p_batch and m.id > p_after order by m.id limit p_most)
     union all
    select j.id, j.batch from unnest(p_ids) as u (id) join job j on j.id = u.id where j.batch is not null
$$;
