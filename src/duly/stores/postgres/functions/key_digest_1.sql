-- 16 bytes that stand for a key of one kind (unique, idempotency) in its scope, as core/keys.py makes them.
-- Lock: none. Index: none. Differs: SQLite's callers pass digests.
create function {schema}.key_digest_1(p_kind text, p_task text, p_tenant text, p_key text) returns bytea
language sql stable strict parallel safe as $$
    select substr(sha256(convert_to(concat_ws(E'\x1f', p_kind, p_task, p_tenant, p_key), 'UTF8')), 1, 16)
$$;
