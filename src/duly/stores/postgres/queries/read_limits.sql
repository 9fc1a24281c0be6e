-- Limits as they stand. Lock, index: limits_1. Differs: none.
select name, most, pace, burst, held, waiting, next_at, held_until, held_by, held_reason, breaker, breaker_until, override
  from {schema}.limits_1(%(names)s::text[], %(most)s::int, %(now)s::timestamptz)
