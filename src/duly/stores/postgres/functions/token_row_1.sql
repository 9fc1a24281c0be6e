-- A token as it is shown: never its hash. Lock, index: none. Differs: PostgreSQL only.
create type {schema}.token_row_1 as (
    id bigint, name text, scopes text[], by text, created_at timestamptz, expires_at timestamptz, last_used_at timestamptz,
    revoked_at timestamptz, state text);
