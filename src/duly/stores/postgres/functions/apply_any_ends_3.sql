-- Applies ends of any kind; answers how many were live. See apply_ends_3.
-- Lock: the claimed rows FOR UPDATE, in the order given (callers sort by incarnation, id), in an earlier statement than
-- the wishes it protects: a cancel waits for this lock and looks again; then settle_ends_2's.
-- Index: claimed_pkey, job_pkey, wish_pkey. Differs: SQLite needs no lock.
create function {schema}.apply_any_ends_3(
    p_incarnations bigint[], p_ids bigint[], p_runs int[], p_events text[], p_states text[],
    p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[], p_delays float8[], p_results bytea[],
    p_reasons text[], p_notes text[], p_error_types text[], p_error_messages text[], p_tracebacks text[],
    p_fingerprints text[], p_elapsed float8[], p_own boolean, v_now timestamptz
) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    v_applied bigint;
    v_rich bigint[];
    v_finals text[];
begin
    perform 1 from unnest(p_incarnations, p_ids, p_runs) as u (incarnation, id, run) cross join lateral (
        select 1 from claimed c where c.incarnation = u.incarnation and c.id = u.id and c.run = u.run for update) held;
    with held as materialized (
        select u.incarnation, u.id, u.run, u.event, u.delay, u.result, u.reason, u.note, u.error_type, u.error_message,
               u.traceback, u.fingerprint, u.elapsed, coalesce(u.failed, 0) as failed, coalesce(u.lost, 0) as lost,
               coalesce(u.interrupted, 0) as interrupted, coalesce(u.snoozed, 0) as snoozed, c.tid, c.priority, j.queue_key,
               j.suspect_key, j.task_key, j.enqueued_at, j.queue, j.task, j.tenant, j.correlation_id, j.tenant_key,
               j.extras | coalesce(c.extras, 0::smallint) as extras,
               w.reason as wish_reason, w.by as wish_by,
               case when w.id is null then u.state else 'cancelled' end as final,
               -- Expiry asks whether a job has started: an attempt that was handed back without a start leaves it standing.
               case when u.event = 'interrupt' and u.elapsed is null then c.expires_at end as kept_expiry,
               greatest(c.claimed_at, v_now - u.elapsed * interval '1 second') as started_at
          from unnest(p_incarnations, p_ids, p_runs, p_events, p_states, p_failed, p_lost, p_interrupted, p_snoozed, p_delays,
                      p_results, p_reasons, p_notes, p_error_types, p_error_messages, p_tracebacks, p_fingerprints, p_elapsed)
            as u (incarnation, id, run, event, state, failed, lost, interrupted, snoozed, delay, result, reason, note,
                  error_type, error_message, traceback, fingerprint, elapsed)
         cross join lateral (
            select c.ctid as tid, c.priority, c.expires_at, c.claimed_at, c.extras from claimed c
             where c.incarnation = u.incarnation and c.id = u.id and c.run = u.run offset 0) c
         cross join lateral (
            select j.queue_key, j.suspect_key, j.task_key, j.enqueued_at, j.queue, j.task, j.tenant, j.correlation_id,
                   j.extras, j.tenant_key
              from job j where j.id = u.id offset 0) j
          left join lateral (
            select w.id, w.reason, w.by from wish w
             where u.state in ('ready', 'scheduled', 'cancelled') and w.id = u.id offset 0) w on true
    ), gone as (
        delete from claimed where ctid = any(array(select h.tid from held h))
    ), told as (
        delete from progress where id = any(array(select h.id from held h))
    ), granted as (
        delete from wish where id = any(array(select h.id from held h where h.final not in ('ready', 'scheduled')))
    ), finishing as (
        insert into finished (id, queue_key, enqueued_at, started_at, finished_at, incarnation, run, failed, lost, interrupted,
                              snoozed, status, queue, task, tenant, correlation_id, reason, note, result)
        select h.id, h.queue_key, h.enqueued_at, case when h.elapsed is not null then h.started_at end, v_now, h.incarnation,
               h.run, h.failed, h.lost, h.interrupted, h.snoozed, h.final, h.queue, h.task, h.tenant, h.correlation_id,
               case when h.wish_reason is not null then h.wish_reason else h.reason end,
               case when h.wish_reason is not null then 'cancelled by ' || h.wish_by else h.note end,
               case when octet_length(h.result) <= 8192 then h.result end
          from held h where h.final in ('completed', 'skipped', 'cancelled')
    ), large as (
        insert into result (id, result)
        select h.id, h.result from held h where h.final in ('completed', 'skipped', 'cancelled') and octet_length(h.result) > 8192
    ), dying as (
        insert into dead (id, queue_key, enqueued_at, started_at, died_at, incarnation, run, failed, lost, interrupted,
                          snoozed, queue, task, tenant, correlation_id, reason, note, error_type, error_message, traceback,
                          fingerprint)
        select h.id, h.queue_key, h.enqueued_at, case when h.elapsed is not null then h.started_at end, v_now, h.incarnation,
               h.run, h.failed, h.lost, h.interrupted, h.snoozed, h.queue, h.task, h.tenant, h.correlation_id, h.reason,
               h.note, h.error_type, h.error_message, h.traceback, h.fingerprint
          from held h where h.final = 'dead'
    ), later as (
        insert into scheduled (id, run_at, queue, tenant, task, priority, run, failed, lost, interrupted, snoozed, expires_at)
        select h.id, least(v_now + coalesce(h.delay, 0) * interval '1 second', '9999-01-01Z'),
               case when h.lost > 0 then h.suspect_key else h.queue_key end, coalesce(h.tenant_key, 0), h.task_key, h.priority,
               h.run, h.failed, h.lost, h.interrupted, h.snoozed, h.kept_expiry
          from held h where h.final = 'scheduled'
    ), again as (
        insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at)
        select case when h.lost > 0 then h.suspect_key else h.queue_key end, coalesce(h.tenant_key, 0), h.priority,
               nextval('pos'), h.id, h.task_key, v_now, h.run, h.failed, h.lost, h.interrupted, h.snoozed, h.kept_expiry
          from held h where h.final = 'ready'
    ), recorded as (
        insert into attempt (id, run, incarnation, started_at, ended_at, event, reason, error_type, error_message, traceback,
                             fingerprint)
        select h.id, h.run, h.incarnation, case when h.elapsed is not null then h.started_at end, v_now, h.event, h.reason,
               h.error_type, h.error_message, h.traceback, h.fingerprint
          from held h where not (h.event = 'complete' and h.run = 1)
    )
    select count(*), array_agg(h.id) filter (where h.extras <> 0), array_agg(h.final) filter (where h.extras <> 0)
      into v_applied, v_rich, v_finals from held h;
    if v_rich is not null then
        perform settle_ends_2(v_rich, v_finals, p_own, v_now);
    end if;
    return v_applied;
end
$$;
