-- Remove silent workers, take back what they held. Lock, index: reap_1. Differs: none.
select {schema}.reap_1(%(incarnations)s::bigint[], %(beats)s::bigint[], %(poison)s::int, %(now)s::timestamptz)
