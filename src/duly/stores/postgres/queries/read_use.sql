-- What duly's relations use, and the declared queues. Lock, index: use_1. Differs: SQLite knows its pages.
select used, queue, importance, sheds from {schema}.use_1(%(age)s::float8, %(now)s::timestamptz)
