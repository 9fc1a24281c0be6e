-- What happened in a span of time. Lock, index: tallies_1. Differs: none.
select at, queue, task, completed, skipped, dead, cancelled, shed, failed, lost, timeout, redelivered, redriven, suppressed,
       waited, ran
  from {schema}.tallies_1(%(span)s::int, %(since)s::timestamptz, %(until)s::timestamptz, %(queues)s::text[], %(tasks)s::text[])
