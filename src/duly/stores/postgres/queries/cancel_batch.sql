-- Give a batch up. Lock, index: cancel_batch_2. Differs: none.
select {schema}.cancel_batch_2(%(id)s::bigint, %(by)s::text, %(reason)s::text, %(whole)s::boolean, %(now)s::timestamptz)
