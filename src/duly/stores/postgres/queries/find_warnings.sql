-- What keeps this database from keeping a queue well: (kind, detail, number). Lock: none. Index: none.
-- Differs: PostgreSQL only.
select 'transaction' as kind,
       a.pid || ' of ' || coalesce(a.usename, '?') || ' (' || coalesce(nullif(a.application_name, ''), '?') || ')',
       extract(epoch from clock_timestamp() - a.xact_start)::float8
  from pg_stat_activity a
 where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
   and a.xact_start < clock_timestamp() - interval '5 minutes'
union all
select 'prepared', p.gid, extract(epoch from clock_timestamp() - p.prepared)::float8 from pg_prepared_xacts p
 where p.database = current_database() and p.prepared < clock_timestamp() - interval '5 minutes'
union all
select 'slot', s.slot_name::text, 0 from pg_replication_slots s
 where not s.active and (s.xmin is not null or s.database = current_database())
union all
select 'setting', s.name, 0 from pg_settings s
 where (s.name, s.setting) in (('synchronous_commit', 'off'), ('fsync', 'off'), ('autovacuum', 'off'))
union all
select 'isolation', current_setting('default_transaction_isolation'), 0
 where current_setting('default_transaction_isolation') not in ('read committed', 'read uncommitted')
union all
select 'public', min(p.proname), count(*)::float8 from pg_proc p
 where p.pronamespace = to_regnamespace('{schema}') and exists (select from pg_roles r where r.rolname = 'duly_producer')
   and has_schema_privilege('duly_producer', p.pronamespace, 'usage')
   and (p.proacl is null or exists (select from aclexplode(p.proacl) a where a.grantee = 0))
having count(*) > 0
union all
select 'behind', p.name, p.highest::float8 from {schema}.positions_behind_1() p
union all
select 'clock', 'skew', extract(epoch from clock_timestamp() - %(process)s::timestamptz)::float8
