-- The first half of all our two-part advisory lock keys: one number per schema and database.
-- Lock: none. Index: none. Differs: PostgreSQL only.
create function {schema}.door_class_1() returns int
language sql stable as $$
    select ('{schema}.worker'::regclass::oid::bigint - 2147483648)::int
$$;
