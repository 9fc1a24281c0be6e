-- What the key of an ordering key is made of, as core.control.ordering_name. Lock: none. Index: none. Differs: SQLite's callers
-- pass keys.
create function {schema}.ordering_name_1(p_queue text, p_tenant text, p_key text) returns text
language sql immutable parallel safe as $$
    select E'ordering\x1f' || p_queue || E'\x1f' || coalesce(p_tenant, '') || E'\x1f' || p_key
$$;
