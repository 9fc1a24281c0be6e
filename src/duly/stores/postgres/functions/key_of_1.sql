-- The 64-bit key of a name, as core/names.py makes it: the first 8 bytes of its SHA-256, never 0.
-- Lock: none. Index: none. Differs: SQLite's callers pass keys.
create function {schema}.key_of_1(p_name text) returns bigint
language sql stable parallel safe as $$
    select coalesce(nullif(('x' || encode(substr(sha256(convert_to(p_name, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint, 0), 1)
$$;
