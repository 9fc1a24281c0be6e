-- Lets go of what these jobs hold, or keep while they wait: their limits, and once they are final their ordering keys (a dead
-- one only where its queue says so). Whoever waits behind them is looked for by the next exchange: ends never wait, neither
-- for claims nor for callers' transactions.
-- Lock: rows that are nobody else's. Index: hold_id, limit_state_pkey, blocked_gate, job_pkey, keyed_pkey, queue_key.
-- Differs: SQLite admits the next one at once.
create function {schema}.let_go_1(p_ids bigint[], p_states text[], p_keyed boolean, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_freed bigint[];
    v_keys bigint[];
begin
    with gone as (
        delete from hold where id = any(p_ids) returning key
    )
    -- Of tenants without a limit nobody waits for what they hold.
    select array_agg(distinct g.key) into v_freed from gone g
     where coalesce((select true from limit_state s where s.key = g.key), (select true from blocked b where b.gate = g.key limit 1));
    if p_keyed then
        with ended as materialized (
            select u.id, j.ordering, u.state, case when u.state = 'dead' then coalesce(q.ordering, 'wait') else 'skip_dead'
                   end as policy
              from unnest(p_ids, p_states) as u (id, state)
             cross join lateral (
                select j.ordering, j.queue_key from job j
                 where u.state not in ('ready', 'scheduled') and j.id = u.id and j.extras & 64 <> 0 offset 0) j
              left join lateral (select q.ordering from queue q where q.key = j.queue_key offset 0) q on u.state = 'dead'
        ), gone as (
            delete from keyed k using ended e where e.policy = 'skip_dead' and k.key = e.ordering and k.id = e.id
        ), paused as (
            -- Whoever looks at the key next passes it on (key_heads_1). Others of the key may end beside it, and live.
            update keyed k set paused = true from ended e
             where e.policy = 'pause_key' and k.key = e.ordering and k.id = e.id
        )
        select array_agg(distinct e.ordering) into v_keys from ended e where e.policy = 'skip_dead';
    end if;
    if v_freed is not null or v_keys is not null then
        insert into released (due, kind, key)
        select '-infinity'::timestamptz, 2, u.key from unnest(v_freed) as u (key)
         union all
        select '-infinity'::timestamptz, 1, u.key from unnest(v_keys) as u (key);
        perform ring_1();
    end if;
end
$$;
