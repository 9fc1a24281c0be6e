-- One round of upkeep. Lock, index: sweep_2. Differs: none.
select ran, expired, orphans, overdue, abandoned, unparked
  from {schema}.sweep_2(%(unknown_after)s::float8, %(poison)s::int, %(grace)s::float8, %(now)s::timestamptz)
