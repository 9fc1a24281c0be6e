-- Overrides in force, newest first. Lock: none. Index: override_pkey. Differs: none.
select id, target, kind, value::text, by, reason, at, until, lifted_at from {schema}.override
 where lifted_at is null and (until is null or until > coalesce(%(now)s::timestamptz, clock_timestamp())) order by id desc
