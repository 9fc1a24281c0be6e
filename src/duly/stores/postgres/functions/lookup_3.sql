-- Jobs by id, in whatever state, from one statement over all state tables. Lock: none. Index: the tables' id indexes.
-- Differs: none.
create function {schema}.lookup_3(p_ids bigint[]) returns table (
    id bigint, state text, queue text, task text, tenant text, priority int, tags text[], correlation_id text, args bytea,
    failed int, lost int, interrupted int, snoozed int, run int, attempts int, timeout interval, enqueued_at timestamptz,
    expires_at timestamptz, run_at timestamptz, started_at timestamptz, deadline timestamptz, finished_at timestamptz,
    incarnation bigint, reason text, note text, result bytea, error_type text, error_message text, traceback text,
    fingerprint text, progress_run int, done bigint, of bigint, progress_note text, wished boolean, trigger text,
    ordering_key text, waits_for text
)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    return query
    select j.id, s.state, j.queue, j.task, j.tenant, coalesce(s.priority, j.priority), j.tags, j.correlation_id,
           j.args, s.failed, s.lost, s.interrupted, s.snoozed, s.run, j.attempts, j.timeout, j.enqueued_at, case
           when s.final then j.expires_at else s.expires_at end, s.run_at, s.started_at, s.deadline, s.finished_at,
           s.incarnation, s.reason, s.note, coalesce(s.result, r.result), s.error_type, s.error_message,
           s.traceback, s.fingerprint, p.run, p.done, p.of, p.note, w.id is not null, j.trigger,
           j.ordering_key,
           case when s.state = 'blocked' then case s.cause when 3 then 'key' when 4 then (
                select l.name from limit_state l where l.key = s.gate) else 'task' end end
      from unnest(p_ids) as asked (id)
     cross join lateral (
        select j.id, j.queue, j.task, j.tenant, j.priority, j.tags, j.correlation_id, j.args, j.attempts, j.timeout,
               j.enqueued_at, j.expires_at, j.trigger, j.ordering_key
          from job j where j.id = asked.id offset 0) j
     cross join lateral (
        select 'running' as state, false as final, c.priority, c.failed, c.lost, c.interrupted, c.snoozed, c.run,
               c.expires_at, null::timestamptz as run_at, c.claimed_at as started_at, c.deadline, null::timestamptz
               as finished_at, c.incarnation, null as reason, null as note, null::bytea as result, null as
               error_type, null as error_message, null as traceback, null as fingerprint, null::smallint as
               cause, null::bigint as gate
          from claimed c where c.id = j.id
        union all
        select 'ready', false, r.priority, r.failed, r.lost, r.interrupted, r.snoozed, r.run, r.expires_at, null,
               null, null, null, null, null, null, null, null, null, null, null, null,
               null
          from ready r where r.id = j.id
        union all
        select 'scheduled', false, s.priority, s.failed, s.lost, s.interrupted, s.snoozed, s.run, s.expires_at,
               s.run_at, null, null, null, null, null, null, null, null, null, null, null, null, null
          from scheduled s where s.id = j.id
        union all
        select 'blocked', false, b.priority, b.failed, b.lost, b.interrupted, b.snoozed, b.run, b.expires_at, null,
               null, null, null, null, null, null, null, null, null, null, null, b.cause,
               b.gate
          from blocked b where b.id = j.id
        union all
        select f.status, true, null, f.failed, f.lost, f.interrupted, f.snoozed, f.run, null, null, f.started_at,
               null, f.finished_at, f.incarnation, f.reason, f.note, f.result, null, null, null, null, null, null
          from finished f where f.id = j.id
        union all
        select 'dead', true, null, d.failed, d.lost, d.interrupted, d.snoozed, d.run, null, null, d.started_at,
               null, d.died_at, d.incarnation, d.reason, d.note, null, d.error_type, d.error_message, d.traceback,
               d.fingerprint, null, null
          from dead d where d.id = j.id
        offset 0) s
      left join lateral (select r.result from result r where s.final and r.id = j.id offset 0) r on true
      left join lateral (
        select p.run, p.done, p.of, p.note from progress p
         where s.state = 'running' and p.id = j.id and p.run = s.run offset 0) p on true
      left join lateral (select w.id from wish w where s.state = 'running' and w.id = j.id offset 0) w on true;
end
$$;
