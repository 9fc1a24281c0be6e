-- End a pause. Lock, index: resume_2. Differs: none.
select {schema}.resume_2(%(target)s::text, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
