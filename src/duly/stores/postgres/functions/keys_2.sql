-- Ordering keys with work, those with the most waiting first, of the first 5,000 keys or those that hold the first 60,000
-- places, whichever are fewer; at most 10,000 jobs of one are counted.
-- Lock: none. Index: keyed_pkey, one probe a key; key_head_pkey, job_pkey and the tables' id indexes. Differs: SQLite looks at
-- 20,000 keys.
create function {schema}.keys_2(p_queue text, p_most int)
returns table (
    queue text, tenant text, key text, head bigint, state text, waiting int, since timestamptz, paused boolean)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_keys bigint[] := '{}';
    v_key bigint := -9223372036854775808;
    v_left int := 60000;
begin
    for v_number in 1 .. 5000 loop
        select k.key into v_key from keyed k where k.key > v_key order by k.key, k.id limit 1;
        exit when not found or v_left <= 0;
        v_keys := v_keys || v_key;
        v_left := v_left - (select count(*) from (select 1 from keyed k where k.key = v_key limit 10001) n);
    end loop;
    return query
    select j.queue, j.tenant, j.ordering_key, h.id, s.state,
           (n.members - case when coalesce(s.state <> 'dead', false) then 1 else 0 end)::int, coalesce(h.since, j.enqueued_at),
           coalesce(h.paused, false)
      from unnest(v_keys) as u (key)
      left join lateral (
        select k.id, h.since, h.paused or coalesce(k.paused, false) as paused
          from key_head h left join keyed k on k.key = h.key and k.id = h.id where h.key = u.key offset 0) h on true
     cross join lateral (
        select k.id from keyed k where k.key = u.key order by k.key, k.id limit 1) f
     cross join lateral (
        select j.queue, j.tenant, j.ordering_key, j.enqueued_at from job j
         where j.id = coalesce(h.id, f.id) and (p_queue is null or j.queue = p_queue) offset 0) j
      left join lateral (
        select 'ready' as state from ready r where r.id = h.id
         union all select 'scheduled' from scheduled s where s.id = h.id
         union all select 'blocked' from blocked b where b.id = h.id
         union all select 'running' from claimed c where c.id = h.id
         union all select 'dead' from dead d where d.id = h.id limit 1) s on true
     cross join lateral (
        select count(*) filter (where not exists (select 1 from dead d where d.id = k.id)) as members
          from (select k.id from keyed k where k.key = u.key limit 10001) k offset 0) n
     order by 6 desc, 1, 2, 3 limit p_most;
end
$$;
