-- blocked -> running for jobs that were admitted, in the order given. p_holders are those that hold limits, all of them with p_counted.
-- Lock: the blocked rows are the caller's; keys as free_unique_1. Index: blocked_pkey, job_pkey, unique_key_id, step_pkey.
-- Differs: SQLite moves them one by one.
create function {schema}.claim_blocked_1(
    p_incarnation bigint, p_known jsonb, p_ids bigint[], p_places int[], p_holders bigint[], p_follows boolean[],
    p_staged bigint[], p_counted boolean, p_now timestamptz
) returns setof {schema}.exchanged_3
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    with taken as materialized (
        select u.place, u.number, b.*, j.queue_name, j.task_name, j.tenant_name, j.tags, j.correlation_id, j.attempts, j.timeout,
               j.enqueued_at, j.unique_live, j.trigger, j.ordering_key,
               case when octet_length(j.args) <= 8192 then j.args end as args,
               case when p_counted or u.id = any(p_holders) then j.extras | 256::smallint else j.extras end as extras,
               (case when u.follows then 512 else 0 end + case when u.id = any(p_staged) then 1024 else 0 end)::smallint as told
          from unnest(p_ids, p_places, p_follows) with ordinality as u (id, place, follows, number)
         cross join lateral (
            select b.ctid as tid, b.id, case when b.id = any(p_staged) then b.pos end as pos, b.queue, b.task, b.priority,
                   b.run + 1 as run, b.failed, b.lost, b.interrupted, b.snoozed, b.expires_at
              from blocked b where b.id = u.id offset 0) b
         cross join lateral (
            select j.queue as queue_name, j.task as task_name, j.tenant as tenant_name, j.tags, j.correlation_id, j.attempts,
                   j.timeout, j.enqueued_at, j.args, j.extras, j.unique_live, j.trigger, j.ordering_key
              from job j where j.id = u.id offset 0) j
    ), gone as (
        delete from blocked where ctid = any(array(select t.tid from taken t))
    ), running as (
        insert into claimed (incarnation, id, queue, task, claimed_at, deadline, run, priority, failed, lost, interrupted,
                             snoozed, expires_at, enqueued_at, queue_name, task_name, tenant, correlation_id, extras)
        select p_incarnation, t.id, t.queue, t.task, p_now,
               p_now + coalesce(t.timeout, (p_known ->> t.task::text)::float8 * interval '1 second'), t.run, t.priority, t.failed,
               t.lost, t.interrupted, t.snoozed, t.expires_at, t.enqueued_at, t.queue_name, t.task_name, t.tenant_name,
               t.correlation_id, case when t.unique_live then t.extras else t.extras & ~4::smallint end
          from taken t
    ), freed as (
        delete from unique_key where ctid = any(array(
            select x.tid from taken t cross join lateral (
                select k.ctid as tid from unique_key k where k.id = t.id for update skip locked) x
             where t.extras & 4 <> 0 and not t.unique_live))
    )
    select null::text, t.place, t.id, t.run, t.priority, t.pos,
           case when t.failed <> 0 or t.lost <> 0 or t.interrupted <> 0 or t.snoozed <> 0
                then array[t.failed, t.lost, t.interrupted, t.snoozed] end,
           t.attempts, t.timeout, t.enqueued_at, t.task_name, nullif(t.tenant_name, ''), t.tags, t.correlation_id, t.args,
           case when t.run > 1 and (select true from step s where s.id = t.id limit 1) then t.extras | t.told | 32::smallint
                else t.extras | t.told end,
           t.trigger, t.ordering_key
      from taken t order by t.number;
end
$$;
