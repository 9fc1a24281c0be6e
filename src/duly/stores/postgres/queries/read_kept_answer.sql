-- What is kept under a key. Lock, index: kept_answer_1. Differs: none.
select token, body_hash, at, expires_at, status, answer
  from {schema}.kept_answer_1(%(key)s::bytea, %(now)s::timestamptz)
