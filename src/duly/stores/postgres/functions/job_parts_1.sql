-- What a job record does not say of how its job was asked for; follow-ups as JSON, in order.
-- Lock: none. Index: job_pkey, blob_id, follow_pkey. Differs: SQLite reads follow-ups by themselves.
create function {schema}.job_parts_1(p_id bigint) returns table (
    priority int, unique_key bytea, unique_live boolean, version bigint, fair boolean, serialise boolean, blobs text[],
    followed text, on_dead text)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select j.priority, j.unique_key, j.unique_live, j.version, coalesce(q.fair, false), coalesce(q.serialise, false),
           array(select b.ref from blob b where b.id = j.id order by b.ref),
           (select jsonb_agg(f.spec order by f.position)::text from follow f where f.id = j.id and f.kind = 1),
           (select jsonb_agg(f.spec order by f.position)::text from follow f where f.id = j.id and f.kind = 2)
      from job j left join queue q on q.key = j.queue_key
     where j.id = p_id
$$;
