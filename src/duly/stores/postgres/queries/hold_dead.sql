-- Whether a dead letter is there that no edited job runs in the place of, and keep it so. Lock, index: hold_dead_1.
-- Differs: none.
select {schema}.hold_dead_1(%(id)s::bigint)
