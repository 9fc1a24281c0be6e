-- blocked -> running for jobs of tasks that others did not know and this worker does, by position, before anything from the
-- lanes; expired and stale ones become skipped; those with an ordering key or limits become ready, to be taken from their lane
-- like others. One row at a time: it happens only after a deploy.
-- Lock: blocked rows FOR UPDATE SKIP LOCKED; they are never updated; keys as free_unique_1. Index: blocked_cause, job_pkey,
-- newest_pkey, step_pkey, task_limit_pkey. Differs: none.
create function {schema}.claim_parked_3(
    p_incarnation bigint, p_known jsonb, p_queues text[], p_lanes bigint[], p_caps int[], p_paused text[],
    p_paused_tasks bigint[], p_bounded bigint[], p_most int, p_tasks bigint[], p_now timestamptz
) returns setof {schema}.exchanged_3
language plpgsql as $$
declare
    v_task bigint;
    v_parked record;
    v_job record;
    v_open bigint[];
    v_left int := p_most;
    v_place int;
    v_run int;
    v_ended text;
    v_bound boolean;
begin
    foreach v_task in array p_tasks loop
        v_bound := v_task = any((select b.tasks from bounds_1() b)::bigint[]);
        continue when v_task = any(p_paused_tasks) or not p_known ? v_task::text;
        while v_left > 0 loop
            select array_agg(l.lane) into v_open from unnest(p_lanes, p_caps, p_queues) as l (lane, cap, queue)
             where l.cap > 0 and ('queue:' || l.queue = any(p_paused)) is not true;
            exit when v_open is null;
            with gone as (
                delete from blocked where ctid = (
                    select b.ctid from blocked b where b.cause = 1 and b.task = v_task and b.queue = any(v_open)
                     order by b.pos limit 1 for update skip locked)
                returning id, queue, tenant, priority, pos, run, failed, lost, interrupted, snoozed, expires_at
            )
            select g.id, g.queue, g.tenant, g.priority, g.pos, g.run, g.failed, g.lost, g.interrupted, g.snoozed, g.expires_at
              into v_parked from gone g;
            exit when not found;
            select j.attempts, j.timeout, j.enqueued_at, j.queue, j.task, j.tenant, j.tags, j.correlation_id, j.args, j.extras,
                   j.unique_key, j.version, j.trigger, j.ordering_key
              into v_job from job j where j.id = v_parked.id;
            v_ended := case when v_parked.expires_at <= p_now then 'expired'
                            when v_job.extras & 8 <> 0 and exists (
                                select 1 from newest n
                                 where n.key = v_job.unique_key and n.version > v_job.version and n.until > p_now)
                                then 'stale' end;
            if v_ended is not null then
                perform finish_waiting_3(array[v_parked.id], array[v_parked.run], array[v_parked.failed], array[v_parked.lost],
                                         array[v_parked.interrupted], array[v_parked.snoozed], 'skipped', array[v_ended],
                                         null, p_now);
                continue;
            end if;
            if v_job.extras & 64 <> 0 or v_bound or v_parked.queue = any(p_bounded) then
                insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed,
                                   expires_at)
                values (v_parked.queue, v_parked.tenant, v_parked.priority, v_parked.pos, v_parked.id, v_task, p_now,
                        v_parked.run, v_parked.failed, v_parked.lost, v_parked.interrupted, v_parked.snoozed,
                        v_parked.expires_at);
                continue;
            end if;
            v_place := array_position(p_lanes, v_parked.queue);
            v_run := v_parked.run + 1;
            insert into claimed (incarnation, id, queue, task, claimed_at, deadline, run, priority, failed, lost, interrupted,
                                 snoozed, expires_at, enqueued_at, queue_name, task_name, tenant, correlation_id, extras)
            values (p_incarnation, v_parked.id, v_parked.queue, v_task, p_now,
                    p_now + coalesce(v_job.timeout, (p_known ->> v_task::text)::float8 * interval '1 second'), v_run,
                    v_parked.priority, v_parked.failed, v_parked.lost, v_parked.interrupted, v_parked.snoozed,
                    v_parked.expires_at, v_job.enqueued_at, v_job.queue, v_job.task, v_job.tenant, v_job.correlation_id,
                    v_job.extras);
            if v_job.extras & 4 <> 0 then
                perform free_unique_1(array[v_parked.id], false);
            end if;
            v_left := v_left - 1;
            p_caps[v_place] := p_caps[v_place] - 1;
            return next row(null, v_place, v_parked.id, v_run, v_parked.priority, null,
                            array[v_parked.failed, v_parked.lost, v_parked.interrupted, v_parked.snoozed], v_job.attempts,
                            v_job.timeout, v_job.enqueued_at, v_job.task, v_job.tenant, v_job.tags, v_job.correlation_id,
                            case when octet_length(v_job.args) <= 8192 then v_job.args end,
                            case when v_run > 1 and exists (select 1 from step s where s.id = v_parked.id)
                                 then v_job.extras | 32::smallint else v_job.extras end, v_job.trigger, null)::{schema}.exchanged_3;
        end loop;
    end loop;
end
$$;
