-- Record declared queues and tasks. Lock, index: declare_1. Differs: none.
select {schema}.declare_1(
    %(queues)s::text[], %(keys)s::bigint[], %(owners)s::text[], %(tasks)s::text[], %(task_queues)s::text[])
