-- The dead letters of every queue. Lock: none. Index: dead_queue whole.
select queue, count(*), null from {prefix}_dead group by queue
