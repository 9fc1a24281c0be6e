-- The queues that have a target for the wait of their jobs, or had one, and since when they are late. Lock: none.
-- Index: a row per declared queue. Differs: crossings_1 in PostgreSQL.
select name, key, wait_target, late_since from {prefix}_queue where wait_target is not null or late_since is not null order by name
