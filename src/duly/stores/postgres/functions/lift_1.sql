-- Ends an override; false when it is over already. Lock: its row. Index: override_pkey. Differs: none.
create function {schema}.lift_1(p_id bigint, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_was record;
begin
    update override o set lifted_at = v_now
     where o.id = p_id and o.lifted_at is null and (o.until is null or o.until > v_now)
    returning o.target, o.key, o.kind into v_was;
    if not found then
        return false;
    end if;
    if v_was.kind = 'block' then
        delete from limit_policy where name = 'block:' || p_id;
        perform tell_bounds_1();
        perform let_on_1(key_of_1('block:' || p_id));
    else
        perform let_on_1(v_was.key);
    end if;
    perform note_act_1('lift ' || v_was.target, p_by, p_reason, 0, v_now);
    return true;
end
$$;
