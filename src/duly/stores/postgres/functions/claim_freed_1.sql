-- Looks after keys and limits that were freed, or open now: lets the jobs go on that waited behind them. Those that fit into
-- the claim start at once, before anything from the lanes; the others become ready in their old places: also those in lanes
-- that are bounded themselves, where the claim looks next: rows of kind `watch` name the limits to look at after that
-- (watch_limits_1). One row of kind `batch` says that batches have to be looked at.
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
    v_lone bigint[];
    v_heads bigint[];
    v_held bigint[];
    v_held_keys bigint[];
    v_turned bigint[];
    v_turns bigint[];
    v_next_keys bigint[];
    v_next bigint[];
    v_watch bigint[];
begin
    with told as (
        delete from released where ctid = any(array(
            select r.ctid from released r
             where r.due = '-infinity' and r.number > coalesce((select s.position from sweep s where s.name = 'words'), 0)
             order by r.due, r.number limit 200 for update skip locked)
            || array(
            select r.ctid from released r
             where r.due > coalesce((select s.last_at from sweep s where s.name = 'words'), '-infinity') and r.due <= p_now
             order by r.due, r.number limit 200 for update skip locked))
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
        -- What stands behind a limit whose state has gone in between meets it anew.
        v_lone := array(
            select b.id from (
                select u.key from unnest(v_limits) as u (key)
                 where (select true from limit_state s where s.key = u.key) is null offset 0) g
             cross join lateral (
                select b.id from blocked b where b.gate = g.key and b.cause = 4
                 order by b.gate, b.tenant, b.priority, b.pos limit 500 for update skip locked) b);
        if v_lone <> '{}' then
            perform unblock_1(v_lone, p_now);
        end if;
        -- Locks as long as states of them are there.
        v_limits := lock_limits_1(array(select s.key from unnest(v_limits) as u (key) cross join lateral (
            select s.key from limit_state s where s.key = u.key offset 0) s), null, null, p_now);
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
    v_heads := array(
        select coalesce(
            (select k.id from (select h.id from key_head h where h.key = u.key offset 0) h cross join lateral (
                select k.id from keyed k where k.key = u.key and k.id = h.id offset 0) k),
            (select k.id from keyed k where k.key = u.key order by k.key, k.id limit 1))
          from unnest(v_keys) with ordinality as u (key, place) order by u.place);
    v_ids := array(
        select x.id from unnest(v_heads) as u (id) cross join lateral (
            select b.id from blocked b where b.id = u.id and b.cause > 2 for update skip locked) x);
    v_held_keys := array(
        select u.key from unnest(v_keys, v_heads) as u (key, id)
         where u.id <> all(v_ids) and (select b.cause > 2 from blocked b where b.id = u.id));
    with open as materialized (
        select o.key, o.free, floor(o.burst - extract(epoch from greatest(o.tat, p_now) - p_now) / extract(epoch from o.pace)
                                    + 1e-6) as rated
          from open_limits_1(v_limits, p_now) o where o.closed_until is null
    ), next as materialized (
        select o.key, s.turn as before, n.ids, n.turn from open o
         cross join lateral (
            select s.turn from limit_state s where s.key = o.key offset 0) s
         cross join lateral next_in_turn_1(o.key, s.turn, least(500, o.free, o.rated)::int) n
         where o.free > 0 is not false and o.rated > 0 is not false
         union all
        -- Nothing is free; but who waits here and has kept a place needs none.
        select o.key, 0, array[k.id], 0 from open o
         cross join lateral (
            select b.id from hold h cross join lateral (
                select b.id from blocked b
                 where b.id = h.id and b.gate = h.key and b.cause = 4 for update skip locked) b
             where h.key = o.key and h.incarnation = 0 order by h.key, h.id limit 1) k
         where o.free = 0 and o.rated > 0 is not false
    )
    select v_ids || array(select i.id from next n cross join lateral unnest(n.ids) as i (id) where i.id <> all(v_ids)),
           array(select n.key from next n cross join lateral unnest(n.ids) as i (id)),
           array(select i.id from next n cross join lateral unnest(n.ids) as i (id)),
           array(select n.key from next n where n.ids = '{}' and (select true from blocked b where b.gate = n.key limit 1)),
           array(select n.key from next n where n.turn <> n.before), array(select n.turn from next n where n.turn <> n.before)
      into v_ids, v_next_keys, v_next, v_held, v_turned, v_turns;
    if v_turned <> '{}' then
        update limit_state s set turn = u.turn from unnest(v_turned, v_turns) as u (key, turn) where s.key = u.key;
    end if;
    if v_held <> '{}' or v_held_keys <> '{}' then
        -- A caller's transaction has locked whoever is next, as a duplicate does or a cancel: it is waited for, not asked for.
        insert into released (due, kind, key)
        select p_now + interval '100 milliseconds', 2, u.key from unnest(v_held) as u (key)
         union all
        select p_now + interval '100 milliseconds', 1, u.key from unnest(v_held_keys) as u (key);
    end if;
    select array_agg(b.id) filter (where b.here), array_agg(b.id) filter (where not b.here) into v_here, v_away
      from (select b.id, p_known ? b.task::text and (b.task = any(p_paused_tasks)) is not true
                   and exists (select 1 from unnest(p_queues, p_lanes, p_caps) as l (queue, lane, cap)
                                where l.lane = b.queue and l.cap > 0 and (l.lane = any(p_bounded)) is not true
                                  and ('queue:' || l.queue = any(p_paused)) is not true) as here
              from unnest(v_ids) as u (id) cross join lateral (
                select b.id, b.task, b.queue from blocked b where b.id = u.id offset 0) b) b;
    if v_away is not null then
        -- Limits that the claim comes back to once it has been in the lanes into which they let go all that they may: another
        -- look at them before that would let the same number go on again.
        v_watch := array(
            select u.key from unnest(v_next_keys, v_next) as u (key, id)
             cross join lateral (
                select p_known ? b.task::text and (b.task = any(p_paused_tasks)) is not true
                       and exists (select 1 from unnest(p_queues, p_lanes, p_caps) as l (queue, lane, cap)
                                    where l.lane = b.queue and l.cap > 0 and l.lane = any(p_bounded)
                                      and ('queue:' || l.queue = any(p_paused)) is not true) as near
                  from blocked b where b.id = u.id offset 0) b
             group by u.key having bool_and(b.near));
        return query
        select 'watch', null::int, u.key, null::int, null::int, null::bigint, null::int[], null::int, null::interval,
               null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null, null
          from unnest(v_watch) as u (key);
        perform unblock_1(v_away, p_now);
    end if;
    if v_here is not null then
        return query select a.* from admit_1(p_incarnation, p_known, p_paused_tasks, p_lanes, p_caps, p_most, p_chain, v_here,
                                             null, null, false, p_now) a;
    end if;
    perform watch_limits_1(array(select l from unnest(v_limits) l where l <> all(v_held || v_watch)), p_now);
end
$$;
