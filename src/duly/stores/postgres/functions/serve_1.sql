-- Writes down what the tenants of a fair queue have got in one pass, for their limits and their turns: who was served last, what
-- is left of that turn, and how much less is left for tenants of which something runs.
-- Lock: limit_state rows of bounded tenants are the caller's. Index: claimed_pkey, hold_pkey, job_pkey. Differs: SQLite's is
-- Python.
create function {schema}.serve_1(
    p_incarnation bigint, p_queue text, p_lane bigint, p_tenants bigint[], p_most int[], p_quanta int[], p_started int,
    p_wanted int, p_now timestamptz, out last bigint, out rest int, out spent int)
language plpgsql as $$
declare
    v_served int[];
    v_idle boolean[];
    v_keys bigint[];
    v_names text[];
    v_counts int[];
begin
    with started as materialized (
        select c.id, j.tenant_key, key_of_1('tenant:' || p_queue || '=' || j.tenant) as key
          from claimed c cross join lateral (
            select j.tenant_key, j.tenant from job j where j.id = c.id offset 0) j
         where c.incarnation = p_incarnation and c.queue = p_lane and c.claimed_at = p_now and c.extras & 256 <> 0
           and j.tenant_key is not null
    ), fresh as materialized (
        select s.* from started s
         -- Not by EXISTS, which the planner may answer from the whole of the table, here and below.
         where (select true from hold h where h.key = s.key and h.id = s.id and h.incarnation = p_incarnation) is null
    ), held as (
        insert into hold (key, id, incarnation) select f.key, f.id, p_incarnation from fresh f
            on conflict (key, id) do update set incarnation = excluded.incarnation, until = null
    ), counted as (
        select f.tenant_key, f.key, count(*)::int as served,
               (select true from hold h where h.key = f.key and (h.until is null or h.until > p_now) limit 1) is null as idle
          from fresh f group by f.tenant_key, f.key
    )
    select array_agg(coalesce(c.served, 0) order by t.place), array_agg(coalesce(c.idle, false) order by t.place),
           array_agg(c.key) filter (where c.key is not null), array_agg(c.served) filter (where c.key is not null)
      into v_served, v_idle, v_keys, v_counts
      from unnest(p_tenants) with ordinality as t (tenant, place) left join counted c on c.tenant_key = t.tenant;
    if 0 = any(p_tenants) then
        v_served[array_position(p_tenants, 0)] := p_started - (select coalesce(sum(s), 0) from unnest(v_served) s);
    end if;
    -- Those that are bounded have a state.
    select array_agg(s.key), array_agg(s.name), array_agg(u.served) into v_keys, v_names, v_counts
      from unnest(v_keys, v_counts) as u (key, served) cross join lateral (
        select s.key, s.name from limit_state s where s.key = u.key offset 0) s;
    if v_keys is not null then
        with paced as materialized (
            select t.key, v_counts[array_position(v_keys, t.key)] as served, t.pace, s.tid
              from limit_terms_1(v_keys, v_names, array_fill(key_of_1('tenant:' || p_queue), array[cardinality(v_keys)]), false,
                                 p_now) t
             cross join lateral (select s.ctid as tid from limit_state s where s.key = t.key offset 0) s
             where t.pace is not null or t.closed_until is not null
        ), started as (
            update limit_state s set tat = greatest(s.tat, p_now) + p.served * p.pace * interval '1 second'
              from paced p where s.ctid = p.tid and p.pace is not null
        )
        select array_agg(p.key) into v_keys from paced p;
        perform time_lane_1(u.key, p_now) from unnest(v_keys) as u (key);
    end if;
    spent := 0;
    for v_place in 1 .. cardinality(p_tenants) loop
        continue when v_served[v_place] = 0;
        spent := spent + v_served[v_place] - v_idle[v_place]::int;
        last := p_tenants[v_place];
        -- A turn that the claim cut short goes on with the next one.
        rest := case when v_served[v_place] = p_most[v_place] and p_most[v_place] < p_quanta[v_place] and p_started >= p_wanted
                     then p_quanta[v_place] - v_served[v_place] else 0 end;
    end loop;
end
$$;
