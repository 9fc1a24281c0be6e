-- Forgets a former key; false for the newest, and for an unknown one. Lock: its row. Index: secret_pkey. Differs: none.
create function {schema}.forget_secret_1(p_kind text, p_id int, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    delete from secret s where s.kind = p_kind and s.id = p_id and s.retired_at is not null;
    if not found then
        return false;
    end if;
    perform note_act_2('forget', 'secret:' || p_kind || ':' || p_id, p_by, p_reason, '{}', p_now);
    return true;
end
$$;
