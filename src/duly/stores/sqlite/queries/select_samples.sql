-- Samples within a span of time, in order. Lock: none. Index: the table, two hours at most.
select queue, at, ready, finished from {prefix}_sample where at >= :since order by queue, at
