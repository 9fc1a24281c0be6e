-- Ask a worker to end. Lock, index: drain_worker_1. Differs: none.
select {schema}.drain_worker_1(%(incarnation)s::bigint)
