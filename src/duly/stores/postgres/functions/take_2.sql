-- Takes these limits (keys in order) for a job, all or none; what refused it is the gate. One that is out of patience keeps those
-- before the gate: in the order of keys, so that two of them never keep what the other waits for.
-- Lock: begin_taking_1's. Index: none. Differs: none.
create function {schema}.take_2(
    taking {schema}.taking_1, p_id bigint, p_limits bigint[], p_impatient boolean, p_now timestamptz) returns {schema}.taking_1
language plpgsql as $$
declare
    v_key bigint;
    v_place int;
    v_kept boolean;
    v_taken boolean := true;
begin
    taking.gate := null;
    foreach v_key in array p_limits loop
        v_place := array_position(taking.keys, v_key);
        v_kept := false;
        if taking.kept_ids is not null then
            v_kept := exists (select 1 from unnest(taking.kept_keys, taking.kept_ids) as k (key, id)
                               where k.key = v_key and k.id = p_id);
        end if;
        -- A place that it has kept is among those that are not free; after a cap was lowered it may be one too many.
        v_taken := v_place is not null and taking.closed[v_place] is null
            and coalesce(greatest(taking.tat[v_place], p_now) - (taking.burst[v_place] - 1) * taking.pace[v_place] <= p_now, true)
            and coalesce(taking.free[v_place] + v_kept::int > 0, true);
        if not v_taken then
            taking.gate := v_key;
            exit;
        end if;
    end loop;
    if not v_taken and not (p_impatient and cardinality(p_limits) > 1) then
        return taking;
    end if;
    foreach v_key in array p_limits loop
        exit when v_key = taking.gate;
        v_place := array_position(taking.keys, v_key);
        if v_taken and taking.pace[v_place] is not null then
            taking.tat[v_place] := greatest(taking.tat[v_place], p_now) + taking.pace[v_place];
        end if;
        continue when not taking.counted[v_place];
        v_kept := false;
        if taking.kept_ids is not null then
            v_kept := exists (select 1 from unnest(taking.kept_keys, taking.kept_ids) as k (key, id)
                               where k.key = v_key and k.id = p_id);
        end if;
        if not v_kept then
            taking.free[v_place] := taking.free[v_place] - 1;
        end if;
        if v_taken then
            taking.taken_keys := taking.taken_keys || v_key;
            taking.taken_ids := taking.taken_ids || p_id;
        elsif not v_kept then
            taking.saved_keys := taking.saved_keys || v_key;
            taking.saved_ids := taking.saved_ids || p_id;
        end if;
    end loop;
    return taking;
end
$$;
