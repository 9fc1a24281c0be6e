-- When the first job of a group died after a time. Lock: none. Index: dead_order, what has died in the queue since.
-- Differs: PostgreSQL only.
create function {schema}.died_since_1(p_fingerprint text, p_queue text, p_task text, p_at timestamptz) returns timestamptz
language sql stable as $$
    select d.died_at from {schema}.dead d
     where d.queue_key = {schema}.key_of_1(p_queue) and d.died_at > p_at and d.queue = p_queue and d.task = p_task
       and coalesce(d.fingerprint, '') = p_fingerprint
     order by d.died_at, d.id limit 1
$$;
