-- What a redrive of these dead letters would meet. Lock, index: foresee_redrive_1. Differs: none.
select count, oldest, priority, twins
  from {schema}.foresee_redrive_1(%(queue)s::text, %(task)s::text, %(tenant)s::text, %(correlation)s::text,
    %(fingerprint)s::text, %(tag)s::text, %(since)s::timestamptz, %(until)s::timestamptz, %(most)s::int,
    %(now)s::timestamptz)
