-- Let an ordering key go on. Lock, index: resume_key_1. Differs: none.
select {schema}.resume_key_1(
    %(queue)s::text, %(tenant)s::text, %(key)s::text, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
