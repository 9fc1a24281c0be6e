-- Schedules that are due, with the clock. Lock, index: due_schedules_1. Differs: none.
select now, others, name, definition, origin, next_at, paused, last_at, last_id, waiting, running, fired, missed, created_at,
       failure, failed_at, failures
  from {schema}.due_schedules_1(%(most)s::int, %(now)s::timestamptz)
