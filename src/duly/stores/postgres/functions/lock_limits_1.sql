-- Locks the states of limits, as far as nobody else has locked them, and makes those that are missing, unless their names are
-- NULL; answers the keys that are locked. The others are left in `released`, to be looked at again: some milliseconds later,
-- for whoever has them keeps them to the end of its exchange, and to ask at once would be to ask all the time. Never waits.
-- Lock: limit_state rows FOR UPDATE SKIP LOCKED; an advisory one for each that is missing, at most 128, because the server has
-- room for a limited number. Index: limit_state_pkey. Differs: PostgreSQL only.
create function {schema}.lock_limits_1(p_keys bigint[], p_names text[], p_policies bigint[], p_now timestamptz)
returns bigint[]
language plpgsql as $$
declare
    v_mine bigint[];
    v_made bigint[];
begin
    v_mine := array(
        select x.key from (select distinct u.key from unnest(p_keys) as u (key) order by 1) u cross join lateral (
            select s.key from limit_state s where s.key = u.key for update skip locked) x);
    if exists (select 1 from unnest(p_keys) as u (key) where u.key <> all(v_mine)) then
        v_made := array(
            select n.key from (
                select distinct u.key from unnest(p_keys) as u (key)
                 where u.key <> all(v_mine) and p_names is not null
                   and (select true from limit_state s where s.key = u.key) is null
                 order by 1 limit 128) n
             where pg_try_advisory_xact_lock(door_class_1(), hashtext('limit ' || n.key)));
        with made as (
            insert into limit_state (key, name, policy)
            select u.key, min(u.name), min(u.policy) from unnest(p_keys, p_names, p_policies) as u (key, name, policy)
             where u.key = any(v_made) group by u.key order by u.key
                on conflict (key) do nothing
            returning key
        )
        select v_mine || coalesce(array_agg(m.key), '{}') into v_mine from made m;
        insert into released (due, kind, key)
        select distinct p_now + interval '10 milliseconds', 2, u.key from unnest(p_keys) as u (key) where u.key <> all(v_mine);
    end if;
    return v_mine;
end
$$;
