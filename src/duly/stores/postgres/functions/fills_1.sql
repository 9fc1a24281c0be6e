-- What stands in queue_fill of these queues, after counting anew what is older than a tenth of a second and than twenty times
-- what its count took, unless somebody else is at it: ready jobs, counted to one more than asked, since when the oldest of
-- those is, how many jobs ended a second lately, and when that was counted.
-- Lock: advisory try-lock of the transaction, then rows of queue_fill. Index: queue_fill_pkey, ready_pkey, sample_pkey.
-- Differs: SQLite counts at each call.
create function {schema}.fills_1(p_keys bigint[], p_most int[], p_now timestamptz)
returns table (queue bigint, depth int, oldest float8, out_per_s float8, at timestamptz)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_began timestamptz := clock_timestamp();
begin
    if exists (
        select 1 from unnest(p_keys, p_most) as u (queue, most)
         where not exists (select 1 from queue_fill f
                            where f.queue = u.queue and f.most >= u.most and f.at <= v_now
                              -- On a busy machine few rows take long, too, and cost no more.
                              and f.at > v_now - interval '1 second' * greatest(
                                    0.1, least(20 * f.took, 0.0002 * f.depth, 60))))
       and pg_try_advisory_xact_lock(door_class_1(), hashtext('fills')) then
        -- A count that a crash forgets is made again.
        perform set_config('synchronous_commit', 'off', true);
        insert into queue_fill (queue, at, most, depth, oldest_at, out_per_s, took)
        select u.queue, v_now, u.most, n.depth, n.oldest_at,
               (select (sum(s.ended) - (array_agg(s.ended order by s.at))[1])
                       / nullif(extract(epoch from max(s.at) - min(s.at)), 0)
                  from sample s where s.queue = u.queue and s.at > v_now - interval '5 minutes' and s.at <= v_now),
               extract(epoch from clock_timestamp() - v_began)
          from unnest(p_keys, p_most) as u (queue, most)
         cross join lateral (
            select count(*)::int as depth, min(x.ready_at) as oldest_at
              from (select r.ready_at from ready r where r.queue = u.queue limit u.most + 1) x) n
         order by u.queue
            on conflict (queue) do update
           set at = excluded.at, most = excluded.most, depth = excluded.depth, oldest_at = excluded.oldest_at,
               out_per_s = excluded.out_per_s, took = excluded.took;
    end if;
    return query
    select f.queue, f.depth, extract(epoch from v_now - f.oldest_at)::float8, f.out_per_s, f.at
      from queue_fill f where f.queue = any(p_keys);
end
$$;
