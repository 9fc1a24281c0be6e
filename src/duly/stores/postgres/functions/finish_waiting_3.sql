-- Writes the final rows of jobs that the caller has just deleted from a waiting table, forgets their wishes, gives back their
-- unique keys and lets go of their ordering keys and of what they had reserved.
-- Lock: as free_unique_1. Index: job_pkey, wish_pkey, unique_key_id and those of let_go_1. Differs: none.
create function {schema}.finish_waiting_3(
    p_ids bigint[], p_runs int[], p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[], p_status text,
    p_reasons text[], p_notes text[], p_now timestamptz
) returns void
language plpgsql as $$
begin
    if p_ids is null then
        return;
    end if;
    insert into finished (id, queue_key, enqueued_at, finished_at, run, failed, lost, interrupted, snoozed, status, queue, task,
                          tenant, correlation_id, reason, note)
    select u.id, j.queue_key, j.enqueued_at, p_now, u.run, u.failed, u.lost, u.interrupted, u.snoozed, p_status, j.queue, j.task,
           j.tenant, j.correlation_id, u.reason, u.note
      from unnest(p_ids, p_runs, p_failed, p_lost, p_interrupted, p_snoozed, p_reasons, p_notes)
        as u (id, run, failed, lost, interrupted, snoozed, reason, note)
     cross join lateral (
        select j.queue_key, j.enqueued_at, j.queue, j.task, j.tenant, j.correlation_id from job j
         where j.id = u.id offset 0) j;
    delete from wish where id = any(p_ids);
    perform free_unique_1(p_ids, true);
    perform count_batch_1(p_ids, array_fill(p_status, array[cardinality(p_ids)]), false);
    perform let_go_1(p_ids, array_fill(p_status, array[cardinality(p_ids)]), true, p_now);
end
$$;
