-- Write an entry of the audit. Lock, index: append_audit_1. Differs: none.
select {schema}.append_audit_1(%(verb)s::text, %(target)s::text, %(by)s::text, %(reason)s::text, %(detail)s::text,
                               %(now)s::timestamptz)
