-- One round of upkeep. Lock, index: sweep_1. Differs: none.
select ran, expired, orphans, overdue, abandoned, unparked
  from {schema}.sweep_1(%(unknown_after)s::float8, %(poison)s::int, %(grace)s::float8, %(now)s::timestamptz)
