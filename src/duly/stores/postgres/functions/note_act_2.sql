-- Who did what, to be sealed later. Lock: none. Index: audit_pending_pkey. Differs: SQLite seals by ranges of ids.
create function {schema}.note_act_2(
    p_verb text, p_target text, p_by text, p_reason text, p_detail text, p_now timestamptz) returns bigint
language plpgsql as $$
declare
    v_id bigint;
begin
    insert into audit_entry (at, actor, verb, target, reason, detail)
    values (coalesce(p_now, clock_timestamp()), p_by, p_verb, coalesce(p_target, ''), p_reason, p_detail)
    returning id into v_id;
    insert into audit_pending (id) values (v_id);
    return v_id;
end
$$;
