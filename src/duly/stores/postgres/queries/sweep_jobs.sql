-- One round of upkeep. Lock, index: sweep_3. Differs: none.
select ran, expired, orphans, overdue, abandoned, unparked, shed
  from {schema}.sweep_3(%(unknown_after)s::float8, %(poison)s::int, %(grace)s::float8, %(now)s::timestamptz)
