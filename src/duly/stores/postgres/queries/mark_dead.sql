-- Say something of a group of dead letters. Lock, index: mark_dead_1. Differs: none.
select fingerprint, queue, task, state, owner, note, by, at, regressed_at
  from {schema}.mark_dead_1(%(fingerprint)s::text, %(queue)s::text, %(task)s::text, %(state)s::text, %(owner)s::text,
                            %(note)s::text, %(by)s::text, %(reason)s::text, %(detail)s::text, %(now)s::timestamptz)
