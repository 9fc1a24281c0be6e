-- The token of a hash; NULL: every token, the newest first.
-- Lock: none. Index: token_hash_key; the table, tokens only. Differs: none.
create function {schema}.token_1(p_hash bytea, p_now timestamptz) returns setof {schema}.token_row_1
language plpgsql stable security definer
set search_path = {schema}, pg_temp as $$
begin
    if p_hash is not null then
        return query
        select t.id, t.name, t.scopes, t.by, t.created_at, t.expires_at, t.last_used_at, t.revoked_at,
               case when t.revoked_at is not null then 'revoked'
                    when t.expires_at <= coalesce(p_now, clock_timestamp()) then 'expired' else 'live' end
          from token t where t.hash = p_hash;
    else
        return query
        select t.id, t.name, t.scopes, t.by, t.created_at, t.expires_at, t.last_used_at, t.revoked_at,
               case when t.revoked_at is not null then 'revoked'
                    when t.expires_at <= coalesce(p_now, clock_timestamp()) then 'expired' else 'live' end
          from token t order by t.id desc;
    end if;
end
$$;
