-- Give a permit back. Lock, index: give_back_1. Differs: as acquire_permit.
select {schema}.give_back_1(%(names)s::text[], %(id)s::bigint, %(incarnation)s::bigint, %(now)s::timestamptz)
