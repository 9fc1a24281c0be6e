-- scheduled -> ready for due jobs. Lock, index: promote_2. Differs: none.
select ready, expired, taken, last, next_in from {schema}.promote_2(%(most)s::int, %(from)s::timestamptz, %(now)s::timestamptz)
