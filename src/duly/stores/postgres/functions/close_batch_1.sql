-- open -> running: what follows is looked for by the next finish. False when there is no such batch.
-- Lock: the batch. Index: batch_pkey. Differs: SQLite looks at once.
create function {schema}.close_batch_1(p_id bigint, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    update batch b set state = 'running', closed_at = v_now where b.id = p_id and b.state = 'open';
    if found then
        insert into batch_done (batch) values (p_id);
        perform tell_batches_1();
    end if;
    return exists (select from batch b where b.id = p_id);
end
$$;
