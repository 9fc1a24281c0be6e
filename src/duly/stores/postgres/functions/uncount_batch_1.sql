-- Takes back the counts of ended jobs that are about to run again, from their final rows.
-- Lock: none; the caller has the final rows. Index: job_pkey, dead_pkey, finished_pkey. Differs: none.
create function {schema}.uncount_batch_1(p_ids bigint[]) returns void
language plpgsql as $$
begin
    insert into batch_done (batch, skipped, cancelled, dead)
    select j.batch, -count(*) filter (where f.status = 'skipped'), -count(*) filter (where f.status = 'cancelled'),
           -count(*) filter (where f.status is null)
      from unnest(p_ids) as u (id) cross join lateral (
        select j.batch from job j where j.id = u.id and j.extras & 128 <> 0 offset 0) j
      left join lateral (select f.status from finished f where f.id = u.id offset 0) f on true
     where j.batch is not null
     group by j.batch;
end
$$;
