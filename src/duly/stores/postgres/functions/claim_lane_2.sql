-- Takes at most p_want jobs from one lane in order of (priority, position): ready -> running. Expired and stale ones become
-- skipped, those of tasks that the worker does not know, or that are paused, become blocked; none of them counts. The scan
-- starts behind the dead entries that the caller has met before (jumps), but for one sweep a second of the fleet, which finds
-- what was committed late behind them. Always ends with a row of kind `lane`.
-- Lock: ready rows FOR UPDATE SKIP LOCKED; the worker row is locked by the caller. Rows of ready are never updated, so that
-- a locked ctid cannot move. Keys as free_unique_1. Index: ready_pkey, job_pkey; for jobs with extras newest_pkey, step_pkey.
-- Differs: SQLite has one writer and no dead entries.
create function {schema}.claim_lane_2(
    p_incarnation bigint, p_known jsonb, p_paused bigint[], p_place int, p_lane bigint, p_want int, p_sweep boolean,
    p_jump_lanes bigint[], p_jump_from int[], p_jump_pos bigint[], p_jump_to bigint[],
    p_now timestamptz
) returns setof {schema}.exchanged_2
language plpgsql as $$
#variable_conflict use_column
declare
    v_row {schema}.exchanged_2;
    v_tail {schema}.exchanged_2;
    v_began timestamptz := clock_timestamp();
    v_swept boolean := p_sweep and sweep_due_1('lane:' || p_lane, 1000);
    v_from int[];
    v_pos bigint[];
    v_to bigint[];
    v_left int := p_want;
    v_taken int;
    v_claimed_keys bigint[];
    v_skipped_keys bigint[];
begin
    v_tail := row('lane', p_place, (select s.last_value from pos s), 0, null, null, 0, v_swept::int, 0, 0, p_want, null, null,
                  null, null, null, null, null, null, null, 0, null);
    if not v_swept then
        select array_agg(j.low), array_agg(j.pos), array_agg(j.high) into v_from, v_pos, v_to
          from unnest(p_jump_lanes, p_jump_from, p_jump_pos, p_jump_to) as j (lane, low, pos, high) where j.lane = p_lane;
    end if;
    if v_from is null then
        v_from := '{-2147483648}';
        v_pos := '{-1}';
        v_to := '{2147483648}';
    end if;
    while v_left > 0 loop
        v_taken := 0;
        for v_row in
            with picked as materialized (
                select x.tid from unnest(v_from, v_pos, v_to) as s (low, pos, high) cross join lateral (
                    select r.ctid as tid from ready r
                     where r.queue = p_lane and r.tenant = 0 and (r.priority, r.pos) > (s.low, s.pos) and r.priority < s.high
                     order by r.priority, r.pos limit v_left for update skip locked) x
                 limit v_left
            ), gone as (
                delete from ready where ctid = any(array(select p.tid from picked p))
                returning id, task, priority, pos, run + 1 as run, failed, lost, interrupted, snoozed, expires_at
            ), taken as materialized (
                select g.*, j.queue_key, j.queue, j.task as task_name, j.tenant, j.tags, j.correlation_id, j.attempts, j.timeout,
                       j.enqueued_at, j.extras, j.trigger,
                       case when octet_length(j.args) <= 8192 then j.args end as args,
                       case when g.expires_at <= p_now then 'expired'
                            when g.task = any(p_paused) then 'paused'
                            when not p_known ? g.task::text then 'unknown'
                            when j.extras & 8 <> 0 and exists (
                                select 1 from newest n where n.key = j.unique_key and n.version > j.version and n.until > p_now)
                                then 'stale'
                            else 'claimed' end as kind
                  from gone g cross join lateral (
                    select j.queue_key, j.queue, j.task, j.tenant, j.tags, j.correlation_id, j.attempts, j.timeout, j.enqueued_at,
                           j.args, j.extras, j.unique_key, j.version, j.trigger
                      from job j where j.id = g.id offset 0) j
            ), running as (
                insert into claimed (incarnation, id, queue, task, claimed_at, deadline, run, priority, failed, lost,
                                     interrupted, snoozed, expires_at)
                select p_incarnation, t.id, p_lane, t.task, p_now,
                       p_now + coalesce(t.timeout, (p_known ->> t.task::text)::float8 * interval '1 second'),
                       t.run, t.priority, t.failed, t.lost, t.interrupted, t.snoozed, t.expires_at
                  from taken t where t.kind = 'claimed'
            ), parked as (
                insert into blocked (id, task, queue, pos, since, cause, priority, run, failed, lost, interrupted, snoozed,
                                     expires_at)
                select t.id, t.task, p_lane, t.pos, p_now, case t.kind when 'unknown' then 1 else 2 end, t.priority, t.run - 1,
                       t.failed, t.lost, t.interrupted, t.snoozed, t.expires_at
                  from taken t where t.kind in ('unknown', 'paused')
            ), expired as (
                insert into finished (id, queue_key, enqueued_at, finished_at, run, failed, lost, interrupted, snoozed,
                                      status, queue, task, tenant, correlation_id, reason)
                select t.id, t.queue_key, t.enqueued_at, p_now, t.run - 1, t.failed, t.lost, t.interrupted, t.snoozed,
                       'skipped', t.queue, t.task_name, t.tenant, t.correlation_id, t.kind
                  from taken t where t.kind in ('expired', 'stale')
            )
            select t.kind, p_place, t.id, t.run, t.priority, t.pos, t.failed, t.lost, t.interrupted, t.snoozed, t.attempts,
                   t.timeout, t.enqueued_at, p_now, t.queue, t.task_name, t.tenant, t.tags, t.correlation_id, t.args,
                   case when t.run > 1 and (select true from step s where s.id = t.id limit 1) then t.extras | 32::smallint
                        else t.extras end, t.trigger
              from taken t order by t.priority, t.pos
        loop
            v_taken := v_taken + 1;
            if v_row.extras & 4 <> 0 then
                if v_row.kind = 'claimed' then
                    v_claimed_keys := v_claimed_keys || v_row.id;
                elsif v_row.kind in ('expired', 'stale') then
                    v_skipped_keys := v_skipped_keys || v_row.id;
                end if;
            end if;
            if v_row.kind = 'claimed' then
                v_left := v_left - 1;
                return next v_row;
            end if;
        end loop;
        exit when v_taken = 0;
        v_tail.run := v_tail.run + v_taken;
        v_tail.priority := v_row.priority;
        v_tail.pos := v_row.pos;
    end loop;
    if v_claimed_keys is not null then
        perform free_unique_1(v_claimed_keys, false);
    end if;
    if v_skipped_keys is not null then
        perform free_unique_1(v_skipped_keys, true);
    end if;
    v_tail.failed := least(extract(epoch from clock_timestamp() - v_began) * 1e6, 2147483647);
    if v_swept then
        perform sweep_done_1('lane:' || p_lane, v_began);
    end if;
    return next v_tail;
end
$$;
