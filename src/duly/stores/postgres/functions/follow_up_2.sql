-- Enqueues what follows jobs that have just completed (`then`) or gone dead (`on_dead`), in the order in which it was given.
-- Ends wait for no caller's transaction: from the first key on that somebody holds, those with keys are owed, and the sweep
-- pays later.
-- Lock: those of store_jobs_2 and follow_keyed_2. Index: follow_pkey, owed_pkey. Differs: SQLite has one writer.
create function {schema}.follow_up_2(p_ids bigint[], p_states text[], p_own boolean, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_specs jsonb;
    v_keyed record;
    v_paid boolean := true;
begin
    select jsonb_agg(follow_spec_2(f.id, f.spec) order by u.place, f.position) into v_specs
      from unnest(p_ids, p_states) with ordinality as u (id, state, place)
      join follow f on f.id = u.id and f.kind = case u.state when 'completed' then 1 when 'dead' then 2 end
     where not f.spec ?| '{idempotency,unique,serialise}';
    if v_specs is not null then
        perform store_jobs_2(v_specs, null, p_own, p_now);
    end if;
    for v_keyed in
        select f.id, f.kind, f.position from unnest(p_ids, p_states) with ordinality as u (id, state, place)
          join follow f on f.id = u.id and f.kind = case u.state when 'completed' then 1 when 'dead' then 2 end
         where f.spec ?| '{idempotency,unique,serialise}' order by u.place, f.position
    loop
        v_paid := v_paid and follow_keyed_2(v_keyed.id, v_keyed.kind, v_keyed.position, p_own, p_now);
        if not v_paid then
            -- A job redriven may owe it from its last death already; then it is paid once.
            insert into owed (id, kind, position) values (v_keyed.id, v_keyed.kind, v_keyed.position)
                on conflict do nothing;
        end if;
    end loop;
end
$$;
