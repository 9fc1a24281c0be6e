-- Forget expired answers. Lock, index: forget_answers_1. Differs: none.
select {schema}.forget_answers_1(%(most)s::int, %(now)s::timestamptz)
