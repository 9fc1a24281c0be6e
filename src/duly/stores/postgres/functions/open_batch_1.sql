-- Makes a batch, inside another one or not; its follow-ups stand among those of jobs. Answers its id, or NULL and the state of
-- the batch around it where that takes no more (NULL: it is not there).
-- Lock: the batch around it FOR SHARE, so that it does not end meanwhile. Index: batch_pkey. Differs: none.
create function {schema}.open_batch_1(
    p_name text, p_then jsonb, p_on_dead jsonb, p_refs text[], p_parent bigint, p_now timestamptz,
    out id bigint, out state text
)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_id bigint;
begin
    if p_parent is not null then
        state := (select b.state from batch b where b.id = p_parent for share);
        if state is null or state in ('completed', 'cancelled') then
            return;
        end if;
        insert into batch_done (batch, total) values (p_parent, 1);
    end if;
    v_id := nextval('pos');
    insert into batch (id, name, state, parent, created_at) values (v_id, p_name, 'open', p_parent, v_now);
    insert into follow (id, kind, position, spec)
    select v_id, k.kind, e.position, e.spec || jsonb_build_object('trigger', 'batch:' || v_id)
      from (values (1, p_then), (2, p_on_dead)) as k (kind, specs)
     cross join lateral jsonb_array_elements(k.specs) with ordinality as e (spec, position);
    insert into blob (ref, id) select distinct r.ref, v_id from unnest(p_refs) as r (ref);
    id := v_id;
    state := 'open';
end
$$;
