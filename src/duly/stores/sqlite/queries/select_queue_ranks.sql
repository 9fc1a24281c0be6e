-- The declared queues and which give way first when the store is full. Lock: none. Index: none, a row per declared queue.
select name, importance, when_full = 'shed'
from {prefix}_queue
order by name
