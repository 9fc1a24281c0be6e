-- Write the ends of audited jobs. Lock, index: follow_audited_1. Differs: SQLite decides in the program.
select written, looked
from {schema}.follow_audited_1(%(after)s::bigint, %(most)s::int, %(by)s::text, %(not_kept)s::text, %(now)s::timestamptz)
