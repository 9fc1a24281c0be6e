-- First half of a cancel. Lock, index: ask_cancel_3. Differs: none.
select cancelled, wished from {schema}.ask_cancel_3(%(ids)s::bigint[], %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
