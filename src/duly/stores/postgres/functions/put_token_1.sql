-- Keeps a new token; no row when a live one has its name, or any its hash.
-- Lock: the table, against others that put: two may not take one name. Index: the table, tokens only. Differs: none.
create function {schema}.put_token_1(
    p_name text, p_hash bytea, p_scopes text[], p_lasting float8, p_by text, p_reason text, p_now timestamptz)
returns setof {schema}.token_row_1
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    lock table token in share row exclusive mode;
    if exists (select 1 from token t
                where t.hash = p_hash
                   or (t.name = p_name and t.revoked_at is null and (t.expires_at is null or t.expires_at > v_now))) then
        return;
    end if;
    insert into token (name, hash, scopes, by, created_at, expires_at)
    values (p_name, p_hash, p_scopes, p_by, v_now, v_now + p_lasting * interval '1 second');
    perform note_act_2('create', 'token:' || p_name, p_by, p_reason, '{}', v_now);
    return query select * from token_1(p_hash, v_now);
end
$$;
