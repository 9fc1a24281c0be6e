-- Queues that have become late, or are in time again. Lock, index: crossings_1. Differs: none.
select queue, late, wait_target, oldest from {schema}.crossings_1(%(now)s::timestamptz)
