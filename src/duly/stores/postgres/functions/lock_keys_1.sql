-- Locks the heads of ordering keys, as far as nobody else has locked them, and makes those that are missing; answers the keys
-- that are locked. The others, as far as they have jobs, are left in `released`, to be looked at again, as lock_limits_1 does.
-- Never waits, but for another claim that made the same new key before a job with a lower id was committed.
-- Lock: key_head rows FOR UPDATE SKIP LOCKED; of a missing one the first row of `keyed` likewise. Index: key_head_pkey,
-- keyed_pkey. Differs: PostgreSQL only.
create function {schema}.lock_keys_1(p_keys bigint[], p_lanes bigint[], p_now timestamptz) returns bigint[]
language plpgsql as $$
declare
    v_mine bigint[];
    v_open bigint[];
begin
    v_mine := array(
        select x.key from (select distinct u.key from unnest(p_keys) as u (key) order by 1) u cross join lateral (
            select h.key from key_head h where h.key = u.key for update skip locked) x);
    v_open := array(
        select x.key from (select distinct u.key from unnest(p_keys) as u (key) where u.key <> all(v_mine) order by 1) u
         cross join lateral (
            -- The very first: whoever has locked it is making the head.
            select f.id from keyed f where f.key = u.key and (select true from key_head h where h.key = u.key) is null
             order by f.key, f.id limit 1) f
         cross join lateral (
            select k.key from keyed k where k.key = u.key and k.id = f.id for update skip locked) x);
    if v_open <> '{}' then
        with made as (
            insert into key_head (key, queue, since)
            select u.key, min(u.lane), p_now from unnest(p_keys, p_lanes) as u (key, lane)
             where u.key = any(v_open) group by u.key order by u.key
                on conflict (key) do nothing
            returning key
        )
        select v_mine || array_agg(m.key) into v_mine from made m;
    end if;
    insert into released (due, kind, key)
    select distinct p_now + interval '10 milliseconds', 1, u.key from unnest(p_keys) as u (key)
     where u.key <> all(v_mine) and (select true from keyed k where k.key = u.key limit 1);
    return v_mine;
end
$$;
