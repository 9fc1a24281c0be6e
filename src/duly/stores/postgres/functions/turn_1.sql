-- Whose turn it is in a fair queue: tenants with ready jobs behind the one that was served last, once round, as many as jobs are
-- wanted, and how many each may give: its share by weight, no more than its limit allows. shared is what is left for tenants of
-- which something runs. The jobs of no tenant are one tenant, without a limit.
-- Lock: limit_state rows of bounded tenants, as lock_limits_1; those that others have locked are jumped over. Index: ready_pkey, a
-- probe a tenant; job_pkey and those of limit_terms_1. Differs: SQLite's is Python.
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
    v_shared int := p_shared;
    v_wanted int := p_wanted;
    v_row record;
    v_most int;
    v_quantum int;
begin
    while cardinality(v_seen) < least(greatest(p_wanted, 8), 256) loop
        select r.tenant, r.id into v_tenant, v_id from ready r
         where r.queue = p_lane and r.tenant > v_at order by r.queue, r.tenant, r.priority, r.pos limit 1;
        if not found then
            exit when v_round = 2;
            v_round := 2;
            v_at := -9223372036854775808;
            continue;
        end if;
        exit when v_round = 2 and v_tenant > v_after;
        v_at := v_tenant;
        v_seen := v_seen || v_tenant;
        v_names := v_names || case when v_tenant = 0 then 'tenant:' || p_queue
                                   else (select 'tenant:' || p_queue || '=' || j.tenant from job j where j.id = v_id) end;
    end loop;
    v_keys := array(select key_of_1(n) from unnest(v_names) with ordinality as u (n, place) order by u.place);
    v_locked := (
        select lock_limits_1(array_agg(t.key), array_agg(t.name), array_agg(key_of_1('tenant:' || p_queue)))
          from limit_terms_1(v_keys, v_names, array_fill(key_of_1('tenant:' || p_queue), array[cardinality(v_keys)]), false,
                             p_now) t
         where t.name <> 'tenant:' || p_queue and (t.most is not null or t.pace is not null) having count(*) > 0);
    tenants := '{}';
    most := '{}';
    quanta := '{}';
    for v_row in
        select u.tenant, u.place, case when u.tenant = 0 then 1 else t.weight end as weight, t.held,
               case when u.tenant = 0 then null
                    when t.closed_until is not null or (t.most is not null or t.pace is not null)
                         and (t.key = any(v_locked)) is not true then 0
                    else least(t.most - t.held, floor(t.burst - extract(epoch from greatest(t.tat, p_now) - p_now)
                                                      / t.pace + 1e-6)::int) end as room,
               sum(case when u.tenant = 0 then 1 else t.weight end) over () as weights
          from unnest(v_seen, v_keys) with ordinality as u (tenant, key, place)
          join limit_terms_1(v_keys, v_names, array_fill(key_of_1('tenant:' || p_queue), array[cardinality(v_keys)]), true,
                             p_now) t on t.key = u.key
         order by u.place
    loop
        if v_row.room <= 0 then
            perform time_lane_1(v_keys[v_row.place], p_now) where v_keys[v_row.place] = any(v_locked);
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
end
$$;
