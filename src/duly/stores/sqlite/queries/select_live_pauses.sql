-- What is paused at the moment. Lock: none. A handful of rows.
select target from {prefix}_pause where until is null or until > :now
