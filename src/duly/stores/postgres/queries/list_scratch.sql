-- The scratch schemas of this and earlier benches. Lock: none. Index: none. Differs: PostgreSQL only.
select nspname::text from pg_namespace where starts_with(nspname::text, %(begin)s) order by nspname
