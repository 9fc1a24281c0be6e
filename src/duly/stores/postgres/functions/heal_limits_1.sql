-- Finds what nobody would look at again: holds of nobody, jobs that wait behind what no longer holds them back, policies of
-- overrides that have ended, and states of limits that are out of use. A reservation lasts as long as its job waits for limits.
-- Lock: hold and limit_state rows FOR UPDATE SKIP LOCKED. Index: hold whole, claimed_id, blocked_gate, limit_state_pkey and
-- those of the parts. Differs: none.
create function {schema}.heal_limits_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_freed bigint[];
    v_gates bigint[];
    v_last bigint;
    v_walked int;
    v_idle bigint[];
begin
    -- Blocks that have ended by themselves.
    delete from limit_policy p where p.name like 'block:%' and not exists (
        select 1 from override o where o.id = substr(p.name, 7)::bigint and o.lifted_at is null
           and (o.until is null or o.until > p_now));
    -- Queues that only an override bounded; one that was made meanwhile has its policy again.
    delete from limit_policy p where p.origin = '' and p.name like 'queue:%' and not exists (
        select 1 from override o where o.key = p.key and o.kind = 'limit' and o.lifted_at is null
           and (o.until is null or o.until > p_now));
    insert into limit_policy (key, name, origin, queue)
    select distinct o.key, o.target, '', substr(o.target, 7) from override o
     where o.kind = 'limit' and o.target like 'queue:%' and o.lifted_at is null and (o.until is null or o.until > p_now)
       and not exists (select 1 from limit_policy p where p.key = o.key)
        on conflict do nothing;
    -- Who made and lifted them stays among the acts. Every look at a limit passes those of its name.
    delete from override o where coalesce(o.lifted_at, o.until) < p_now - interval '30 days';
    with gone as (
        delete from hold where ctid = any(array(
            select h.ctid from hold h
             where h.until <= p_now
                or h.until is null and h.incarnation <> 0
                   and (select true from claimed c where c.incarnation = h.incarnation and c.id = h.id limit 1) is null
                or h.until is null and h.incarnation = 0
                   and (select true from blocked b where b.id = h.id and b.cause > 2 limit 1) is null
             limit 5000 for update skip locked))
        returning key
    )
    select array_agg(distinct g.key) into v_freed from gone g;
    select array_agg(g.gate), max(g.gate) into v_gates, v_last from waited_gates_1(coalesce(
        (select s.position from sweep s where s.name = 'gates'), -9223372036854775808)) g;
    insert into sweep (name, last_at, position)
    values ('gates', p_now, case when cardinality(v_gates) >= 990 then v_last else -9223372036854775808 end)
        on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
    -- Behind a key, and not in its order: damage.
    insert into keyed (key, id)
    select b.gate, b.id from unnest(v_gates) as u (gate) cross join lateral (
        select b.gate, b.id, b.cause from blocked b where b.gate = u.gate order by b.gate, b.tenant, b.priority, b.pos limit 1) b
     where b.cause = 3 and (select true from keyed k where k.key = b.gate and k.id = b.id limit 1) is null
        on conflict do nothing;
    insert into released (due, kind, key)
    select '-infinity'::timestamptz, 2, u.key from unnest(v_freed) as u (key)
     union
    select '-infinity'::timestamptz, case b.cause when 3 then 1 else 2 end, u.gate from unnest(v_gates) as u (gate) cross join lateral (
        select b.cause from blocked b where b.gate = u.gate order by b.gate, b.tenant, b.priority, b.pos limit 1) b
     where case b.cause
           when 3 then (select true from key_head h where h.key = u.gate limit 1) is null
           else exists (select 1 from open_limits_1(array[u.gate], p_now) o
                         where coalesce(o.free > 0, true) and o.closed_until is null
                           and coalesce(greatest(o.tat, p_now) - (o.burst - 1) * o.pace <= p_now, true)) end;
    if found then
        perform ring_1();
    end if;
    -- Behind what has no state any more nothing waits.
    perform unblock_1(array(
        select b.id from unnest(v_gates) as u (gate) cross join lateral (
            select b.id from blocked b where b.gate = u.gate and b.cause = 4
             order by b.gate, b.tenant, b.priority, b.pos limit 500 for update skip locked) b
         where (select true from limit_state s where s.key = u.gate limit 1) is null), p_now);
    select array_agg(w.key) filter (where w.idle), max(w.key), count(*) into v_idle, v_last, v_walked
      from (select s.key, coalesce(s.tat <= p_now, true) and coalesce(s.held_until <= p_now, true) and s.forced is null
                          and coalesce(s.breaker_state = 'closed' and s.calls = 0, true)
                          -- A bounded queue's is looked at by every claim, and would be made again by the next one.
                          and not exists (select 1 from limit_policy p where p.key = s.key and p.queue is not null)
                          and (select true from hold h where h.key = s.key limit 1) is null
                          and (select true from blocked b where b.gate = s.key limit 1) is null as idle
              from limit_state s
             where s.key > coalesce((select w.position from sweep w where w.name = 'limits'), -9223372036854775808)
             order by s.key limit 1000) w;
    insert into sweep (name, last_at, position)
    values ('limits', p_now, case when v_walked = 1000 then v_last else -9223372036854775808 end)
        on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
    if v_idle is not null then
        v_idle := array(select x.key from unnest(v_idle) as u (key) cross join lateral (
            select s.key from limit_state s where s.key = u.key for update skip locked) x);
        delete from limit_state s where s.key = any(v_idle) and (select true from hold h where h.key = s.key limit 1) is null
           and (select true from blocked b where b.gate = s.key limit 1) is null and coalesce(s.tat <= p_now, true)
           and coalesce(s.held_until <= p_now, true) and s.forced is null;
    end if;
end
$$;
