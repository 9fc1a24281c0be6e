-- Writes those of the jobs that store_jobs_2 found to be new, with everything that they carry beside their place.
-- Lock: none. Index: none. Differs: SQLite writes them one by one.
create function {schema}.insert_jobs_1(p_specs jsonb, p_args bytea[], p_ids bigint[], p_outcomes text[], p_now timestamptz)
returns void
language plpgsql as $$
begin
    with asked as materialized (
        select s.*, key_of_1(s.queue) as queue_key, key_of_1(s.task) as task_key, case when d.due > p_now then d.due end as due,
               case when s.fair and s.tenant <> '' then key_of_1(s.tenant) end as tenant_key,
               case when s.ordering_key is not null then key_of_1(ordering_name_1(s.queue, s.tenant, s.ordering_key))
               end as ordering,
               case when s.expires is not null
                    then least(coalesce(greatest(d.due, p_now), p_now) + s.expires * interval '1 second', '9999-01-01Z')
               end as expires_at
          from rows from (
                jsonb_to_recordset(p_specs) as (
                    queue text, task text, priority int, delay float8, run_at timestamptz, expires float8, timeout float8,
                    attempts int, tenant text, tags text[], correlation_id text, "unique" jsonb, version bigint, "then" jsonb,
                    on_dead jsonb, trigger text, refs text[], ordering_key text, fair boolean, batch bigint),
                unnest(p_args), unnest(p_ids), unnest(p_outcomes))
            as s (queue, task, priority, delay, run_at, expires, timeout, attempts, tenant, tags, correlation_id, uniqueness,
                  version, followed, on_dead, trigger, refs, ordering_key, fair, batch, args, id, outcome)
         cross join lateral (
            select case when s.run_at is not null or s.delay is not null
                        then least(coalesce(s.run_at, p_now + s.delay * interval '1 second'), '9999-01-01Z') end as due
         ) d
         where s.outcome = 'created'
    ), stored as (
        insert into job (id, queue_key, suspect_key, task_key, enqueued_at, expires_at, timeout, priority, attempts, queue,
                         task, tenant, correlation_id, tags, args, extras, unique_key, unique_live, version, trigger,
                         ordering_key, ordering, tenant_key, batch)
        select a.id, a.queue_key, key_of_1(a.queue || E'\x1fsuspect'), a.task_key, p_now, a.expires_at,
               a.timeout * interval '1 second', coalesce(a.priority, 100), a.attempts, a.queue, a.task, coalesce(a.tenant, ''),
               a.correlation_id, a.tags, a.args,
               (a.followed is not null)::int + 2 * (a.on_dead is not null)::int + 4 * (a.uniqueness is not null)::int
               + 8 * (a.version is not null)::int + 16 * (a.refs is not null)::int + 64 * (a.ordering_key is not null)::int
               + 128 * (a.batch is not null)::int,
               decode(a.uniqueness ->> 'digest', 'hex'), (a.uniqueness -> 'live')::boolean, a.version, a.trigger,
               a.ordering_key, a.ordering, a.tenant_key, a.batch
          from asked a
    ), ordered as (
        insert into keyed (key, id) select a.ordering, a.id from asked a where a.ordering is not null
    ), counted as (
        insert into batch_done (batch, total) select a.batch, count(*) from asked a where a.batch is not null group by a.batch
    ), joined as (
        insert into batch_member (batch, id) select a.batch, a.id from asked a where a.batch is not null
    ), tagged as (
        insert into job_tag (tag, id) select distinct t.tag, a.id from asked a cross join lateral unnest(a.tags) as t (tag)
    ), followed as (
        insert into follow (id, kind, position, spec)
        select a.id, k.kind, e.position, e.spec
          from asked a cross join lateral (values (1, a.followed), (2, a.on_dead)) as k (kind, specs)
         cross join lateral jsonb_array_elements(k.specs) with ordinality as e (spec, position)
    ), kept as (
        insert into blob (ref, id) select distinct r.ref, a.id from asked a cross join lateral unnest(a.refs) as r (ref)
    ), due as (
        insert into ready (queue, tenant, priority, pos, id, task, ready_at, expires_at)
        select a.queue_key, coalesce(a.tenant_key, 0), coalesce(a.priority, 100), a.id, a.id, a.task_key, p_now, a.expires_at
          from asked a where a.due is null
    )
    insert into scheduled (id, run_at, queue, tenant, task, priority, expires_at)
    select a.id, a.due, a.queue_key, coalesce(a.tenant_key, 0), a.task_key, coalesce(a.priority, 100), a.expires_at
      from asked a where a.due is not null;
end
$$;
