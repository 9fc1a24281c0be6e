-- End a pause. Lock, index: resume_1. Differs: none.
select {schema}.resume_1(%(target)s::text, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
