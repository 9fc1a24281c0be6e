-- The jobs that may start right behind these heads, at most p_chain of a key with its head: the next of the key, without a gap,
-- that wait for nothing else. Of many keys so many less, that all together are p_most: a job that is called and finds no slot
-- has been moved to and fro. Those that stand in `ready` are set behind their key; called are these.
-- Lock: ready rows FOR UPDATE SKIP LOCKED. Index: keyed_pkey, ready_id, blocked_pkey, job_pkey, newest_pkey. Differs: none.
create function {schema}.call_followers_2(
    p_keys bigint[], p_heads bigint[], p_known jsonb, p_paused_tasks bigint[], p_chain int, p_most int,
    p_now timestamptz,
    out followers bigint[], out called bigint[])
language plpgsql as $$
declare
    v_most int := least(p_chain, p_most / cardinality(p_heads));
begin
    if v_most < 2 then
        called := '{}';
        return;
    end if;
    with next as materialized (
        select h.key, k.id, coalesce(w.fit, false) as fit, w.tid
          from unnest(p_keys, p_heads) as h (key, head)
         cross join lateral (
            select b.queue from blocked b where b.id = h.head offset 0) b
         cross join lateral (
            select k.id from keyed k where k.key = h.key and k.id > h.head order by k.key, k.id limit v_most - 1) k
          left join lateral (
            select w.tid, w.queue = b.queue and w.lost = 0 and (w.expires_at <= p_now) is not true and p_known ? w.task::text
                   and (w.task = any(p_paused_tasks)) is not true
                   and not exists (select 1 from job j join newest n on n.key = j.unique_key and n.version > j.version
                                      and n.until > p_now where j.id = k.id and j.extras & 8 <> 0) as fit
              from (select r.ctid as tid, r.queue, r.task, r.lost, r.expires_at from ready r where r.id = k.id
                     union all
                    select null, b.queue, b.task, b.lost, b.expires_at from blocked b
                     where b.id = k.id and b.cause = 3 and b.gate = h.key) w offset 0) w on true
    ), fit as materialized (
        select n.*, bool_and(n.fit) over (partition by n.key order by n.id) as close from next n
    ), locked as materialized (
        select f.key, x.*
          from fit f cross join lateral (
            select r.ctid as tid, r.id, r.task, r.queue, r.tenant, r.pos, r.ready_at, r.priority, r.run, r.failed, r.lost,
                   r.interrupted, r.snoozed, r.expires_at
              from ready r where f.close and f.tid is not null and r.id = f.id for update skip locked) x
    ), gone as (
        delete from ready where ctid = any(array(select l.tid from locked l))
    ), set_behind as (
        insert into blocked (id, task, queue, tenant, pos, since, cause, gate, priority, run, failed, lost, interrupted, snoozed,
                             expires_at)
        select l.id, l.task, l.queue, l.tenant, l.pos, l.ready_at, 3, l.key, l.priority, l.run, l.failed, l.lost, l.interrupted,
               l.snoozed, l.expires_at
          from locked l
    )
    select array_agg(f.id) filter (where f.close), array(select l.id from locked l) into followers, called from fit f;
    -- Behind one that somebody else took meanwhile nothing follows.
    followers := array(
        select f.id from (
            select j.id, bool_and(b.id is not null) over (partition by j.ordering order by j.id) as close
              from unnest(followers) as u (id)
             cross join lateral (select j.id, j.ordering from job j where j.id = u.id offset 0) j
              left join lateral (select b.id from blocked b where b.id = u.id offset 0) b on true) f
         where f.close order by f.id);
end
$$;
