-- Give back keys in flight. Lock, index: release_answers_1. Differs: none.
select {schema}.release_answers_1(%(keys)s::bytea[])
