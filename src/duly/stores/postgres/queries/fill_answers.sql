-- Answer requests. Lock, index: fill_answers_1. Differs: none.
select {schema}.fill_answers_1(%(keys)s::bytea[], %(statuses)s::int[], %(answers)s::bytea[], %(keep)s::float8[],
                               %(now)s::timestamptz)
