-- End a silence. Lock, index: end_silence_1. Differs: none.
select {schema}.end_silence_1(%(id)s::bigint, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
