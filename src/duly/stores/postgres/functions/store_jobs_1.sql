-- Stores jobs that have more to them than their place in a queue: keys, a version, follow-ups, blobs, a trigger. p_specs is
-- an array of jobs as JSON; p_args are their arguments byte for byte, NULL when they stand in the specs. Answers in the order
-- asked; outcome: created, duplicate (id is the other job's) or reused (the same; nothing was stored for this one).
-- Lock: the keys in sorted order, all idempotency keys before all unique keys; with p_own false the waiting holder of a
-- unique key FOR KEY SHARE. Index: those of take_idempotency_1 and take_unique_1. Differs: SQLite has one writer.
create function {schema}.store_jobs_1(p_specs jsonb, p_args bytea[], p_own boolean, p_now timestamptz)
returns table (place int, id bigint, outcome text, run_at timestamptz)
language plpgsql as $$
#variable_conflict use_column
declare
    v_mine bigint[] := array(select nextval('pos') from generate_series(1, jsonb_array_length(p_specs)));
    v_args bytea[] := coalesce(p_args, array(
        select convert_to(s.spec ->> 'args', 'UTF8') from jsonb_array_elements(p_specs) with ordinality as s (spec, place)
         order by s.place));
    v_versions bigint[] := array(
        select case when s.spec ? 'unique' then (s.spec ->> 'version')::bigint end
          from jsonb_array_elements(p_specs) with ordinality as s (spec, place) order by s.place);
    v_ids bigint[] := v_mine;
    v_outcomes text[] := array_fill('created'::text, array[cardinality(v_mine)]);
    v_replaced bigint[] := '{}';
    v_by bigint[] := '{}';
    v_due timestamptz[];
    v_key record;
    v_told record;
begin
    for v_key in
        select s.place, decode(s.spec ->> 'idempotency', 'hex') as key
          from jsonb_array_elements(p_specs) with ordinality as s (spec, place) where s.spec ? 'idempotency' order by 2, 1
    loop
        v_told := take_idempotency_1(v_key.key, v_mine[v_key.place], v_args[v_key.place], p_now);
        v_ids[v_key.place] := v_told.id;
        v_outcomes[v_key.place] := v_told.outcome;
    end loop;
    for v_key in
        select s.place, decode(s.spec #>> '{unique,digest}', 'hex') as key, (s.spec #> '{unique,live}')::boolean as live,
               (s.spec #> '{unique,replace}')::boolean as replace, s.spec ? 'idempotency' as kept
          from jsonb_array_elements(p_specs) with ordinality as s (spec, place) where s.spec ? 'unique' order by 2, 1
    loop
        continue when v_outcomes[v_key.place] <> 'created';
        v_told := take_unique_1(v_key.key, v_mine[v_key.place], 0, v_key.live, v_key.replace, v_versions[v_key.place], v_mine,
                                v_versions, not p_own, p_now);
        if v_told.holder is not null then
            -- Also for repeats of this one in the same call.
            v_ids := array_replace(v_ids, v_mine[v_key.place], v_told.holder);
            v_outcomes[v_key.place] := 'duplicate';
            if v_key.kept then
                update idempotency i set id = v_told.holder where i.id = v_mine[v_key.place];
            end if;
        elsif v_told.replaced is not null then
            v_replaced := v_replaced || v_told.replaced;
            v_by := v_by || v_mine[v_key.place];
        end if;
    end loop;
    with asked as materialized (
        select s.*, key_of_1(s.queue) as queue_key, key_of_1(s.task) as task_key, case when d.due > p_now then d.due end as due,
               case when s.expires is not null
                    then least(coalesce(greatest(d.due, p_now), p_now) + s.expires * interval '1 second', '9999-01-01Z')
               end as expires_at
          from rows from (
                jsonb_to_recordset(p_specs) as (
                    queue text, task text, priority int, delay float8, run_at timestamptz, expires float8, timeout float8,
                    attempts int, tenant text, tags text[], correlation_id text, "unique" jsonb, version bigint, "then" jsonb,
                    on_dead jsonb, trigger text, refs text[]),
                unnest(v_args), unnest(v_ids), unnest(v_outcomes))
            as s (queue, task, priority, delay, run_at, expires, timeout, attempts, tenant, tags, correlation_id, uniqueness,
                  version, followed, on_dead, trigger, refs, args, id, outcome)
         cross join lateral (
            select case when s.run_at is not null or s.delay is not null
                        then least(coalesce(s.run_at, p_now + s.delay * interval '1 second'), '9999-01-01Z') end as due
         ) d
         where s.outcome = 'created'
    ), stored as (
        insert into job (id, queue_key, suspect_key, task_key, enqueued_at, expires_at, timeout, priority, attempts, queue,
                         task, tenant, correlation_id, tags, args, extras, unique_key, unique_live, version, trigger)
        select a.id, a.queue_key, key_of_1(a.queue || E'\x1fsuspect'), a.task_key, p_now, a.expires_at,
               a.timeout * interval '1 second', coalesce(a.priority, 100), a.attempts, a.queue, a.task, coalesce(a.tenant, ''),
               a.correlation_id, a.tags, a.args,
               (a.followed is not null)::int + 2 * (a.on_dead is not null)::int + 4 * (a.uniqueness is not null)::int
               + 8 * (a.version is not null)::int + 16 * (a.refs is not null)::int,
               decode(a.uniqueness ->> 'digest', 'hex'), (a.uniqueness -> 'live')::boolean, a.version, a.trigger
          from asked a
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
        insert into ready (queue, priority, pos, id, task, ready_at, expires_at)
        select a.queue_key, coalesce(a.priority, 100), a.id, a.id, a.task_key, p_now, a.expires_at
          from asked a where a.due is null
    )
    insert into scheduled (id, run_at, queue, task, priority, expires_at)
    select a.id, a.due, a.queue_key, a.task_key, coalesce(a.priority, 100), a.expires_at from asked a where a.due is not null;
    v_due := array(select (select s.run_at from scheduled s where s.id = u.id)
                     from unnest(v_mine) with ordinality as u (id, place) order by u.place);
    if cardinality(v_replaced) > 0 then
        perform replace_waiting_1(v_replaced, v_by, p_now);
    end if;
    perform ring_1();
    return query
    select u.place::int, u.id, u.outcome,
           case when u.outcome = 'created' then v_due[u.place]
                else (select s.run_at from scheduled s where s.id = u.id) end
      from unnest(v_ids, v_outcomes) with ordinality as u (id, outcome, place) order by u.place;
end
$$;
