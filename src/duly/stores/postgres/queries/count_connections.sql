-- The server's connections, those of duly in this database, and how many there may be. Lock: none. Index: none.
-- Differs: PostgreSQL only.
select count(*), count(*) filter (where application_name = 'duly' and datname = current_database()),
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
  from pg_stat_activity where datid is not null and usesysid is not null
