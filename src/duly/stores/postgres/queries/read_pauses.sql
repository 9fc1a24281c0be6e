-- Pauses in force. Lock: none. Index: pause_pkey. Differs: none.
select target, until, by, reason, at from {schema}.pause
 where until is null or until > coalesce(%(now)s::timestamptz, clock_timestamp()) order by target
