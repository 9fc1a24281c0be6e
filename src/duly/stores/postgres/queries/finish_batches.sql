-- Enqueue what follows batches. Lock, index: finish_batches_1. Differs: SQLite does it with the end.
select {schema}.finish_batches_1(%(now)s::timestamptz)
