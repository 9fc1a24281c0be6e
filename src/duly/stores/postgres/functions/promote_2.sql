-- scheduled -> ready at the tail for due jobs in order of their due times; skipped when expired, cancelled when wished.
-- The scan starts at p_from: before it only dead entries were met (a sweep passes NULL). Answers how many became ready and
-- expired, how many were taken in all, the due time of the last, and the seconds until the next, or until something opens that
-- others wait behind.
-- Lock: scheduled rows FOR UPDATE SKIP LOCKED in an earlier statement than their wishes are read; these rows are never
-- updated, so that a locked ctid cannot move. Index: scheduled_due, released_pkey. Differs: SQLite needs no p_from.
create function {schema}.promote_2(p_most int, p_from timestamptz, p_now timestamptz)
returns table (ready int, expired int, taken int, last timestamptz, next_in float8)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_from timestamptz := coalesce(p_from, '-infinity');
    v_tids tid[];
    v_next timestamptz;
    v_timer timestamptz;
begin
    perform require_read_committed_1();
    ready := 0;
    expired := 0;
    taken := 0;
    select array_agg(x.tid), max(x.run_at) into v_tids, last from (
        select s.ctid as tid, s.run_at from scheduled s
         where s.run_at >= v_from and s.run_at <= v_now
         order by s.run_at, s.id limit p_most for update skip locked) x;
    if v_tids is not null then
        with gone as (
            delete from scheduled where ctid = any(v_tids)
            returning id, run_at, queue, tenant, task, priority, run, failed, lost, interrupted, snoozed, expires_at
        ), sorted as materialized (
            select g.*, w.reason, 'cancelled by ' || w.by as note,
                   case when w.id is not null then 'cancelled' when g.expires_at <= v_now then 'skipped' else 'ready' end as state
              from gone g left join lateral (
                select w.id, w.by, w.reason from wish w where w.id = g.id offset 0) w on true
             order by g.run_at, g.id
        ), due as (
            insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at)
            select s.queue, s.tenant, s.priority, nextval('pos'), s.id, s.task, v_now, s.run, s.failed, s.lost, s.interrupted, s.snoozed,
                   s.expires_at
              from sorted s where s.state = 'ready'
        ), ended as (
            select finish_waiting_3(array_agg(s.id), array_agg(s.run), array_agg(s.failed), array_agg(s.lost),
                                    array_agg(s.interrupted), array_agg(s.snoozed), s.state,
                                    array_agg(coalesce(s.reason, 'expired')), array_agg(s.note), v_now)
              from sorted s where s.state <> 'ready' group by s.state
        )
        select count(*) filter (where s.state = 'ready'), count(*) filter (where s.state = 'skipped'), count(*)
          into ready, expired, taken
          from sorted s cross join (select count(*) from ended) e;
        if ready > 0 then
            perform ring_1();
        end if;
    end if;
    if taken < p_most then
        select s.run_at into v_next from scheduled s where s.run_at > v_now order by s.run_at limit 1;
        v_timer := (
            select r.due from released r
             where r.due > coalesce((select s.last_at from sweep s where s.name = 'words'), '-infinity')
             order by r.due, r.number limit 1);
        if v_timer <= v_now then
            -- Somebody who waits may go on: whoever claims next looks after it.
            perform ring_1();
            v_timer := (select r.due from released r where r.due > v_now order by r.due limit 1);
        end if;
        next_in := extract(epoch from least(v_next, v_timer) - v_now);
    else
        next_in := 0;
    end if;
    return next;
end
$$;
