-- A temporary change of policy. A bound on a queue's lane that nobody declared, and a block, get a policy of their own, so that
-- claims look for them. Lock: none. Index: limit_policy_pkey. Differs: none.
create function {schema}.override_1(
    p_target text, p_kind text, p_value jsonb, p_lasting float8, p_by text, p_reason text, p_now timestamptz,
    out id bigint, out at timestamptz, out until timestamptz)
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
#variable_conflict use_column
declare
    v_name text := p_target;
begin
    at := coalesce(p_now, clock_timestamp());
    until := at + p_lasting * interval '1 second';
    insert into override (target, key, kind, value, by, reason, at, until)
    values (p_target, key_of_1(p_target), p_kind, p_value, p_by, p_reason, override_1.at, override_1.until)
    returning override.id into override_1.id;
    if p_kind = 'block' then
        v_name := 'block:' || override_1.id;
    end if;
    if p_target like 'queue:%' then
        insert into limit_policy (key, name, origin, queue) values (key_of_1(v_name), v_name, '', substr(p_target, 7))
            on conflict do nothing;
    end if;
    perform tell_bounds_1();
    perform let_on_1(key_of_1(p_target));
    perform note_act_1(p_kind || ' ' || p_target, p_by, p_reason, 0, override_1.at);
end
$$;
