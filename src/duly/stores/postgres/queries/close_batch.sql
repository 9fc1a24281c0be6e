-- No more comes to a batch from where it was made. Lock, index: close_batch_1. Differs: none.
select {schema}.close_batch_1(%(id)s::bigint, %(now)s::timestamptz)
