-- What a redrive of these dead letters would meet: how many can run again, and since when the first has been dead. Of the
-- p_most that died last (null: of all): the least urgent priority, and how many have a unique key that a live job holds.
-- Lock: none. Index: dead_by_error or dead_order; job_pkey, unique_key_pkey, those of key_holder_1. Differs: SQLite looks at all.
create function {schema}.foresee_redrive_1(
    p_queue text, p_task text, p_tenant text, p_correlation text, p_fingerprint text, p_tag text, p_since timestamptz,
    p_until timestamptz, p_most int, p_now timestamptz, out count bigint, out oldest timestamptz, out priority int, out twins bigint)
language sql stable security definer
set search_path = {schema}, pg_temp
set jit = off as $$
    with fit as materialized (
        select d.id, d.died_at
          from dead d
         where d.successor is null
           and (p_queue is null or d.queue = p_queue)
           and (p_task is null or d.task = p_task)
           and (p_tenant is null or d.tenant = p_tenant)
           and (p_correlation is null or coalesce(d.correlation_id, d.id::text) = p_correlation)
           and (p_fingerprint is null or starts_with(d.fingerprint, p_fingerprint))
           and (p_tag is null or exists (select from job j where j.id = d.id and p_tag = any(j.tags)))
           and (p_since is null or d.enqueued_at >= p_since)
           and (p_until is null or d.enqueued_at < p_until)
    ), latest as (
        select max(j.priority) as priority, count(*) filter (where j.extras & 4 <> 0 and exists (
                   select 1 from unique_key k
                    cross join lateral key_holder_1(k.id, k.run, k.live, coalesce(p_now, clock_timestamp())) h
                    where k.key = j.unique_key and k.id <> j.id and h.taken)) as twins
          from (select f.id from fit f order by f.died_at desc, f.id desc limit p_most) x join job j on j.id = x.id
    )
    select (select count(*) from fit), (select min(f.died_at) from fit f), latest.priority, latest.twins from latest
$$;
