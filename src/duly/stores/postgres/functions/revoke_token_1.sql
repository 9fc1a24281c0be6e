-- Revokes a token; false when there is none, or it is revoked already. Lock: its row. Index: token_pkey. Differs: none.
create function {schema}.revoke_token_1(p_id bigint, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_name text;
begin
    update token t set revoked_at = v_now where t.id = p_id and t.revoked_at is null returning t.name into v_name;
    if not found then
        return false;
    end if;
    perform note_act_2('revoke', 'token:' || v_name, p_by, p_reason, '{}', v_now);
    return true;
end
$$;
