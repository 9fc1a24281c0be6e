-- Stores jobs that have more to them than their place in a queue: keys, a version, follow-ups, blobs, a trigger, an ordering
-- key, a tenant in a fair queue. p_specs is an array of jobs as JSON; p_args are their arguments byte for byte, NULL when they
-- stand in the specs. Answers in the order asked; outcome: created, duplicate (id is the other job's) or reused (the same;
-- nothing was stored for this one).
-- Lock: an advisory one for each ordering key that is serialised, taken before the ids, so that their order is that of the
-- commits; the keys in sorted order, all idempotency keys before all unique keys; with p_own false the waiting holder of a
-- unique key FOR KEY SHARE. Index: those of take_idempotency_1 and take_unique_1. Differs: SQLite has one writer.
create function {schema}.store_jobs_2(p_specs jsonb, p_args bytea[], p_own boolean, p_now timestamptz)
returns table (place int, id bigint, outcome text, run_at timestamptz)
language plpgsql as $$
#variable_conflict use_column
declare
    v_serial int := (
        select count(pg_advisory_xact_lock(door_class_1(), k.lock)) from (
            select distinct hashtext(ordering_name_1(s.spec ->> 'queue', s.spec ->> 'tenant', s.spec ->> 'ordering_key')) as lock
              from jsonb_array_elements(p_specs) as s (spec) where s.spec ? 'serialise' order by 1) k);
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
    perform insert_jobs_1(p_specs, v_args, v_ids, v_outcomes, p_now);
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
