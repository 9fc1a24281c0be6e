-- Take the keys of requests. Lock, index: take_answers_1. Differs: none.
select place, token, body_hash, at, expires_at, status, answer
  from {schema}.take_answers_1(%(keys)s::bytea[], %(tokens)s::bigint[], %(hashes)s::bytea[], %(holds)s::float8[],
                               %(own)s::boolean, %(now)s::timestamptz)
