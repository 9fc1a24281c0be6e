-- Count the next minutes. Lock, index: fold_tally_1. Differs: none.
select {schema}.fold_tally_1(%(lag)s::float8, %(minutes)s::float8, %(hours)s::float8, %(chunk)s::float8, %(now)s::timestamptz)
