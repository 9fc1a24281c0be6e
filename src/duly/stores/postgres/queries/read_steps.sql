-- Steps and cursors of one job. Lock, index: steps_1. Differs: none.
select name, value, position from {schema}.steps_1(%(id)s::bigint)
