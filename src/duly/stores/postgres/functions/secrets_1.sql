-- The keys of a kind, the newest first. Lock: none. Index: secret_pkey. Differs: none.
create function {schema}.secrets_1(p_kind text)
returns table (kind text, id int, value bytea, created_at timestamptz, retired_at timestamptz)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select s.kind, s.id, s.value, s.created_at, s.retired_at from secret s where s.kind = p_kind order by s.id desc
$$;
