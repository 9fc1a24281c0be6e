-- One round of upkeep. Lock, index: sweep_4. Differs: SQLite tries what is due beside it.
select ran, expired, orphans, overdue, abandoned, unparked, shed, due
  from {schema}.sweep_4(%(unknown_after)s::float8, %(poison)s::int, %(grace)s::float8, %(lag)s::float8, %(now)s::timestamptz)
