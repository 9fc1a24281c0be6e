-- Note on a dead letter that an edited job runs in its place. Lock, index: succeed_dead_1. Differs: none.
select {schema}.succeed_dead_1(%(id)s::bigint, %(successor)s::bigint, %(note)s::text, %(by)s::text, %(reason)s::text,
    %(detail)s::text, %(now)s::timestamptz)
