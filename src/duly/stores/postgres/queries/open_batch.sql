-- Make a batch. Lock, index: open_batch_1. Differs: none.
select id, state
  from {schema}.open_batch_1(%(name)s::text, %(then)s::jsonb, %(on_dead)s::jsonb, %(refs)s::text[], %(parent)s::bigint,
                             %(now)s::timestamptz)
