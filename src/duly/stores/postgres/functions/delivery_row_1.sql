-- A change on its way to a sink. Lock, index: none. Differs: PostgreSQL only.
create type {schema}.delivery_row_1 as (
    id bigint, rule text, target text, state text, at timestamptz, value text, sink text, delivery text, tries int,
    next_at timestamptz, last_error text);
