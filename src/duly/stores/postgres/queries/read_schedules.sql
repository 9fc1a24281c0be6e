-- All schedules by name. Lock, index: schedules_1. Differs: none.
select name, definition, origin, next_at, paused, last_at, last_id, waiting, running, fired, missed, created_at,
       failure, failed_at, failures
  from {schema}.schedules_1()
