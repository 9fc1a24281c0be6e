-- Remove one ended worker, take back what it held. Lock, index: disown_1. Differs: none.
select {schema}.disown_1(
    %(incarnation)s::bigint, %(ids)s::bigint[], %(runs)s::int[], %(reason)s::text, %(poison)s::int, %(now)s::timestamptz)
