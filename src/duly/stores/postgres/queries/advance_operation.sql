-- Move a bulk act on. Lock, index: advance_operation_1. Differs: none.
select {schema}.advance_operation_1(
    %(id)s::bigint, %(cursor)s::bigint, %(done)s::bigint, %(skipped)s::bigint, %(ended)s, %(now)s::timestamptz)
