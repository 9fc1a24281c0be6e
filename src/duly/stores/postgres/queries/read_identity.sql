-- Which schema in which database of which running server this is; NULL where our functions are missing.
-- Lock: none. Index: none. Differs: PostgreSQL only.
select (select d.oid::bigint from pg_database d where d.datname = current_database()), to_regclass('{schema}.worker')::oid::bigint,
       extract(epoch from pg_postmaster_start_time())::float8, to_regproc('{schema}.enqueue_2')::oid::bigint
