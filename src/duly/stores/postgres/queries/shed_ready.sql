-- ready -> shed for at most so many jobs of these queues. Lock, index: shed_queues_1. Differs: SQLite moves rows one by one.
select {schema}.shed_queues_1(%(keys)s::bigint[], %(most)s::int, %(reason)s::text, %(now)s::timestamptz)
