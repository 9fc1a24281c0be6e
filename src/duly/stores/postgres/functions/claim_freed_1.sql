-- Looks after keys and limits that were freed, or open now: lets the jobs go on that waited behind them. Those that fit into
-- the claim start at once, before anything from the lanes; the others become ready in their old places: also those in lanes
-- that are bounded themselves, where the claim looks next. One row of kind `batch` says that batches have to be looked at.
-- Lock: released rows FOR UPDATE SKIP LOCKED, then limit_state rows, key_head rows and blocked rows likewise, then those of
-- admit_1. Nothing is read of a key or a limit before it is locked, for its jobs may just be on their way behind it.
-- Index: released_pkey, keyed_pkey, blocked_pkey, blocked_gate and those of the parts. Differs: SQLite's ends do it.
create function {schema}.claim_freed_1(
    p_incarnation bigint, p_known jsonb, p_paused text[], p_paused_tasks bigint[], p_queues text[], p_lanes bigint[],
    p_bounded bigint[], p_caps int[], p_most int, p_chain int, p_now timestamptz
) returns setof {schema}.exchanged_3
language plpgsql as $$
#variable_conflict use_column
declare
    v_keys bigint[];
    v_limits bigint[];
    v_ids bigint[];
    v_here bigint[];
    v_away bigint[];
    v_batches boolean;
begin
    with told as (
        delete from released where ctid = any(array(
            select r.ctid from released r where r.due <= p_now order by r.due, r.number limit 200 for update skip locked))
        returning kind, key
    )
    select array_agg(distinct t.key) filter (where t.kind = 1), array_agg(distinct t.key) filter (where t.kind = 2),
           bool_or(t.kind = 3)
      into v_keys, v_limits, v_batches from told t;
    if v_batches then
        return next row('batch', null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
                        null)::{schema}.exchanged_3;
    end if;
    if v_limits is not null then
        -- Locks as long as states of them are there; who has none has nobody waiting.
        v_limits := lock_limits_1(array(select s.key from unnest(v_limits) as u (key) cross join lateral (
            select s.key from limit_state s where s.key = u.key offset 0) s), null, null);
    end if;
    if v_keys is not null then
        -- Whoever is setting a job behind one of them just now has the lock: what it does is seen, or the key is left.
        v_keys := lock_keys_1(v_keys, array(
            select coalesce(j.queue_key, 0) from unnest(v_keys) with ordinality as u (key, place)
              -- Apart: joined, the planner may look for the first of a key among all jobs.
              left join lateral (
                select k.id from keyed k where k.key = u.key order by k.key, k.id limit 1) k on true
              left join lateral (
                select j.queue_key from job j where j.id = k.id offset 0) j on true
             order by u.place), p_now);
    end if;
    v_ids := array(
        select x.id from unnest(v_keys) as u (key) cross join lateral (
            select coalesce(
                (select k.id from (select h.id from key_head h where h.key = u.key offset 0) h cross join lateral (
                    select k.id from keyed k where k.key = u.key and k.id = h.id offset 0) k),
                (select k.id from keyed k where k.key = u.key order by k.key, k.id limit 1)) as id offset 0) k
         cross join lateral (
            select b.id from blocked b where b.id = k.id and b.cause > 2 for update skip locked) x);
    v_ids := v_ids || array(
        select x.id from open_limits_1(v_limits, p_now) o cross join lateral (
            select b.id from blocked b
             where b.gate = o.key and o.closed_until is null order by b.priority, b.pos
             limit greatest(0, least(500, o.free, floor(
                o.burst - extract(epoch from greatest(o.tat, p_now) - p_now) / extract(epoch from o.pace) + 1e-6)))
               for update skip locked) x
         where x.id <> all(v_ids));
    select array_agg(b.id) filter (where b.here), array_agg(b.id) filter (where not b.here) into v_here, v_away
      from (select b.id, p_known ? b.task::text and (b.task = any(p_paused_tasks)) is not true
                   and exists (select 1 from unnest(p_queues, p_lanes, p_caps) as l (queue, lane, cap)
                                where l.lane = b.queue and l.cap > 0 and (l.lane = any(p_bounded)) is not true
                                  and ('queue:' || l.queue = any(p_paused)) is not true) as here
              from unnest(v_ids) as u (id) cross join lateral (
                select b.id, b.task, b.queue from blocked b where b.id = u.id offset 0) b) b;
    if v_away is not null then
        perform unblock_1(v_away, p_now);
    end if;
    if v_here is not null then
        return query select a.* from admit_1(p_incarnation, p_known, p_paused_tasks, p_lanes, p_caps, p_most, p_chain, v_here,
                                             null, false, p_now) a;
    end if;
    perform watch_limits_1(v_limits, p_now);
end
$$;
