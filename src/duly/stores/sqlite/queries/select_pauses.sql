-- Pauses that hold. Lock: none. A handful of rows.
select target, until, by, reason, at from {prefix}_pause where until is null or until > :now order by target
