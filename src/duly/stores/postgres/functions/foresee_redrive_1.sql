-- What a redrive of these dead letters would meet: how many can run again, since when the first has been dead, the least
-- urgent priority of theirs, and how many have a unique key that a live job holds.
-- Lock: none. Index: dead whole, job_pkey, unique_key_pkey, those of key_holder_1. Differs: none.
create function {schema}.foresee_redrive_1(
    p_queue text, p_task text, p_tenant text, p_correlation text, p_fingerprint text, p_tag text, p_since timestamptz,
    p_until timestamptz, p_now timestamptz, out count bigint, out oldest timestamptz, out priority int, out twins bigint)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select count(*), min(d.died_at), max(j.priority), count(*) filter (where j.extras & 4 <> 0 and exists (
               select 1 from unique_key k
                cross join lateral key_holder_1(k.id, k.run, k.live, coalesce(p_now, clock_timestamp())) h
                where k.key = j.unique_key and k.id <> d.id and h.taken))
      from dead d join job j on j.id = d.id
     where d.successor is null
       and (p_queue is null or d.queue = p_queue)
       and (p_task is null or d.task = p_task)
       and (p_tenant is null or d.tenant = p_tenant)
       and (p_correlation is null or coalesce(j.correlation_id, j.id::text) = p_correlation)
       and (p_fingerprint is null or starts_with(d.fingerprint, p_fingerprint))
       and (p_tag is null or p_tag = any(j.tags))
       and (p_since is null or j.enqueued_at >= p_since)
       and (p_until is null or j.enqueued_at < p_until)
$$;
