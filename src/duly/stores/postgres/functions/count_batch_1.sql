-- Counts ends of jobs in the batches that they are members of, by appending: ends of one batch never wait for each other.
-- p_seen: a worker knows of these ends, and looks at the batches once they have committed; else word is left for one.
-- Lock: none. Index: job_pkey. Differs: SQLite has one writer and counts in the batch itself.
create function {schema}.count_batch_1(p_ids bigint[], p_states text[], p_seen boolean) returns void
language plpgsql as $$
begin
    insert into batch_done (batch, completed, skipped, cancelled, shed, dead)
    select j.batch, count(*) filter (where u.state = 'completed'), count(*) filter (where u.state = 'skipped'),
           count(*) filter (where u.state = 'cancelled'), count(*) filter (where u.state = 'shed'),
           count(*) filter (where u.state = 'dead')
      from unnest(p_ids, p_states) as u (id, state) cross join lateral (
        select j.batch from job j where j.id = u.id and j.extras & 128 <> 0 offset 0) j
     where u.state not in ('ready', 'scheduled') and j.batch is not null
     group by j.batch;
    if found and not p_seen then
        perform tell_batches_1();
    end if;
end
$$;
