-- What is declared of queues. Lock: none. A row per name.
select name, owner, keep, keep_dead, fair, ordering, serialise, wait_target, max_depth, max_age, when_full, importance,
       reserve
from {prefix}_queue
