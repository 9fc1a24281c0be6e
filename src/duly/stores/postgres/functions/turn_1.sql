-- Whose turn it is in a fair queue: tenants with ready jobs behind the one that was served last, once round, as many as jobs are
-- wanted, and how many each may give: its share by weight, no more than its limit allows. shared is what is left for tenants of
-- which something runs. The jobs of no tenant are one tenant, without a limit. Looks further while nobody may start anything, at
-- 7,000 tenants at most.
-- Lock: limit_state rows of bounded tenants that are not full, as lock_limits_1; those that others have locked are jumped
-- over. Index: ready_pkey, a probe a tenant; job_pkey and those of limit_terms_1. Differs: SQLite's is Python.
create function {schema}.turn_1(
    p_queue text, p_lane bigint, p_last bigint, p_left int, p_wanted int, p_share int, p_shared int, p_reserved boolean,
    p_now timestamptz, out tenants bigint[], out most int[], out quanta int[], out share int)
language plpgsql as $$
#variable_conflict use_column
declare
    v_after bigint := case when p_left > 0 then p_last - 1 else p_last end;
    v_at bigint := case when p_left > 0 then p_last - 1 else p_last end;
    v_round int := 1;
    v_tenant bigint;
    v_id bigint;
    v_seen bigint[] := '{}';
    v_names text[] := '{}';
    v_keys bigint[];
    v_locked bigint[];
    v_bounded bigint[];
    v_bounded_names text[];
    v_policy bigint := key_of_1('tenant:' || p_queue);
    v_chunk int := least(greatest(p_wanted, 8), 256);
    v_looked int := 0;
    v_over boolean := false;
    v_shared int := p_shared;
    v_wanted int := p_wanted;
    v_row record;
    v_most int;
    v_quantum int;
begin
    tenants := '{}';
    most := '{}';
    quanta := '{}';
    loop
        v_seen := '{}';
        v_names := '{}';
        while cardinality(v_seen) < v_chunk loop
            select r.tenant, r.id into v_tenant, v_id from ready r
             where r.queue = p_lane and r.tenant > v_at order by r.queue, r.tenant, r.priority, r.pos limit 1;
            if not found then
                exit when v_round = 2;
                v_round := 2;
                v_at := -9223372036854775808;
                continue;
            end if;
            if v_round = 2 and v_tenant > v_after then
                v_over := true;
                exit;
            end if;
            v_at := v_tenant;
            v_seen := v_seen || v_tenant;
            v_names := v_names || case when v_tenant = 0 then 'tenant:' || p_queue
                                       else (select 'tenant:' || p_queue || '=' || j.tenant from job j where j.id = v_id) end;
        end loop;
        v_over := v_over or cardinality(v_seen) < v_chunk;
        v_looked := v_looked + cardinality(v_seen);
        v_chunk := 256;
        v_keys := array(select key_of_1(n) from unnest(v_names) with ordinality as u (n, place) order by u.place);
        -- Whose limit is full is not locked: whoever gives it back leaves word.
        select array_agg(v_seen[x.place] order by x.place), array_agg(x.name order by x.place), array_agg(x.key order by x.place),
               array_agg(x.key) filter (where x.bounded), array_agg(x.name) filter (where x.bounded)
          into v_seen, v_names, v_keys, v_bounded, v_bounded_names
          from (select t.key, t.name, t.most, t.held, array_position(v_keys, t.key) as place,
                       t.name <> 'tenant:' || p_queue and (t.most is not null or t.pace is not null) as bounded
                  from limit_terms_1(v_keys, v_names, array_fill(v_policy, array[cardinality(v_keys)]), false, p_now) t) x
         where v_seen[x.place] = 0 or (x.most - x.held <= 0) is not true;
        v_locked := '{}';
        if v_bounded is not null then
            v_locked := lock_limits_1(v_bounded, v_bounded_names, array_fill(v_policy, array[cardinality(v_bounded)]), p_now);
        end if;
        for v_row in
            select u.tenant, u.key, case when u.tenant = 0 then 1 else u.weight end as weight, u.held,
                   case when u.tenant = 0 then null
                        when u.closed_until is not null or (u.most is not null or u.pace is not null)
                             and (u.key = any(v_locked)) is not true then 0
                        else least(u.most - u.held, floor(u.burst - extract(epoch from greatest(u.tat, p_now) - p_now)
                                                          / u.pace + 1e-6)::int) end as room,
                   sum(case when u.tenant = 0 then 1 else u.weight end) over () as weights
              from (select t.*, v_seen[x.place] as tenant, x.place
                      from limit_terms_1(v_keys, v_names, array_fill(v_policy, array[coalesce(cardinality(v_keys), 0)]), null,
                                         p_now) t
                     cross join lateral (select array_position(v_keys, t.key) as place) x) u
             order by u.place
        loop
            if v_row.room <= 0 then
                perform time_lane_1(v_row.key, p_now) where v_row.key = any(v_locked);
                continue;
            end if;
            share := coalesce(share, p_share, greatest(1, p_wanted / v_row.weights::int));
            v_quantum := case when p_left > 0 and v_row.tenant = p_last then p_left else share * v_row.weight end;
            v_most := least(v_quantum, v_wanted, v_row.room, case when v_row.tenant = 0 then v_shared
                when p_reserved then v_shared + case when v_row.held = 0 then 1 else 0 end end);
            continue when v_most <= 0;
            tenants := tenants || v_row.tenant;
            most := most || v_most;
            quanta := quanta || v_quantum;
            v_wanted := v_wanted - v_most;
            v_shared := v_shared - v_most + case when v_row.tenant <> 0 and v_row.held = 0 then 1 else 0 end;
            exit when v_wanted <= 0;
        end loop;
        exit when tenants <> '{}' or v_over or v_looked >= 7000;
        if v_looked >= 6000 and v_round < 3 then
            -- So many are full: the rest of the look begins anywhere, so that nobody is behind them for ever.
            v_round := 3;
            v_at := ((random() * 2 - 1) * 9223372036854770000)::bigint;
        end if;
    end loop;
end
$$;
