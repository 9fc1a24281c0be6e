-- Marks dead letters that will be purged within p_ahead as announced; answers per queue how many, and from when.
-- Lock: dead rows not yet announced. Index: dead_order whole, queue whole.
-- Differs: none.
create function {schema}.announce_dead_2(
    p_keys bigint[], p_keep float8[], p_default float8, p_ahead float8, p_notice float8, p_now timestamptz
) returns table (queue text, letters bigint, purged_from timestamptz)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    update dead d set announced_at = v_now
     where d.announced_at is null
       and d.died_at + interval '1 second' * coalesce(
           (select k.keep from unnest(p_keys, p_keep) as k (key, keep) where k.key = d.queue_key),
           extract(epoch from (select q.keep_dead from queue q where q.name = d.queue))::float8, p_default)
         <= v_now + p_ahead * interval '1 second';
    return query
    select d.queue, count(*), min(greatest(l.due, d.announced_at + p_notice * interval '1 second'))
      from dead d cross join lateral (
        select d.died_at + interval '1 second' * coalesce(
            (select k.keep from unnest(p_keys, p_keep) as k (key, keep) where k.key = d.queue_key),
           extract(epoch from (select q.keep_dead from queue q where q.name = d.queue))::float8, p_default) as due) l
     where d.announced_at is not null and l.due <= v_now + p_ahead * interval '1 second'
     group by d.queue order by d.queue;
end
$$;
