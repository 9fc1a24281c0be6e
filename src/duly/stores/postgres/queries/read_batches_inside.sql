-- The batches inside one. Lock, index: inside_batch_1. Differs: none.
select id from {schema}.inside_batch_1(%(id)s::bigint) as id
