-- Ask a worker to end. Lock, index: drain_worker_2. Differs: none.
select {schema}.drain_worker_2(%(incarnation)s::bigint, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
