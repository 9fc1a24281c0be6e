-- Take a key of `once`. Lock, index: once_1. Differs: none.
select {schema}.once_1(%(key)s::bytea, %(keep)s::float8, %(own)s, %(now)s::timestamptz)
