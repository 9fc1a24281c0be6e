-- How full queues are, at most a second old. Lock, index: fills_1. Differs: SQLite counts at each call.
select queue, depth, oldest, out_per_s, at
  from {schema}.fills_1(%(keys)s::bigint[], %(most)s::int[], %(now)s::timestamptz)
