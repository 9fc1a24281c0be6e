-- Counts jobs that producers were refused. Lock, index: turn_away_1. Differs: upsert_turned_away.
select {schema}.turn_away_1(%(keys)s::bigint[], 1, %(jobs)s::bigint[], %(now)s::timestamptz)
