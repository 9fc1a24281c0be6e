-- Takes limits and locks outside a claim, all or none: for an attempt (p_id, with p_incarnation and p_run) or for p_ttl seconds.
-- What the attempt has already is no part of the permit, but for locks. Answers what was taken, or the first that refused and the
-- seconds until a try may succeed; no row when the attempt is not live.
-- Lock: the claimed row, then limit_state rows by key, waited for: claims hold them for one statement. Index: claimed_pkey,
-- limit_state_pkey, hold_id and those of limit_terms_1. Differs: SQLite's is Python.
create function {schema}.acquire_1(p_names text[], p_incarnation bigint, p_id bigint, p_run int, p_ttl float8, p_now timestamptz)
returns table (id bigint, names text[], until timestamptz, refused text, wait float8)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_keys bigint[];
    v_policies bigint[];
    v_term record;
    v_opens timestamptz;
begin
    perform require_read_committed_1();
    if p_id is not null then
        perform 1 from claimed c where c.incarnation = p_incarnation and c.id = p_id and c.run = p_run for no key update;
        if not found then
            return;
        end if;
    end if;
    select array_agg(u.key order by u.key), array_agg(u.name order by u.key), array_agg(u.policy order by u.key)
      into v_keys, names, v_policies
      from (select distinct key_of_1(n) as key, n as name, key_of_1(policy_of_1(n)) as policy from unnest(p_names) n) u
     where u.name like 'lock:%' or p_id is null
        or not exists (select 1 from hold h where h.key = u.key and h.id = p_id);
    names := coalesce(names, '{}');
    insert into limit_state (key, name, policy)
    select u.key, u.name, u.policy from unnest(v_keys, names, v_policies) as u (key, name, policy) order by u.key
        on conflict (key) do nothing;
    perform 1 from limit_state s where s.key = any(v_keys) order by s.key for update;
    for v_term in select t.* from limit_terms_1(v_keys, names, v_policies, false, v_now) t order by t.key loop
        v_opens := greatest(v_term.closed_until,
                            greatest(v_term.tat, v_now) - (v_term.burst - 1) * v_term.pace * interval '1 second');
        if v_term.closed_until is not null or v_term.most - v_term.held <= 0 or v_opens > v_now then
            refused := v_term.name;
            -- Before version 17 nothing may be taken from infinity.
            wait := case when v_opens > v_now and v_opens < 'infinity' then extract(epoch from v_opens - v_now) end;
            return next;
            return;
        end if;
    end loop;
    refused := null;
    wait := null;
    id := coalesce(p_id, -nextval('pos'));
    until := case when p_id is null then v_now + p_ttl * interval '1 second' end;
    insert into hold (key, id, incarnation, until)
    select u.key, acquire_1.id, case when p_id is null then 0 else p_incarnation end, acquire_1.until from unnest(v_keys) as u (key);
    update limit_state s set tat = greatest(s.tat, v_now) + t.pace * interval '1 second'
      from limit_terms_1(v_keys, names, v_policies, false, v_now) t where s.key = t.key and t.pace is not null;
    if until is not null then
        insert into released (due, kind, key) select acquire_1.until, 2, u.key from unnest(v_keys) as u (key);
    end if;
    if p_id is not null and v_keys is not null then
        -- So that its end looks for what it holds.
        update claimed c set extras = coalesce(c.extras, 0::smallint) | 256::smallint
         where c.incarnation = p_incarnation and c.id = p_id and coalesce(c.extras, 0) & 256 = 0;
    end if;
    return next;
end
$$;
