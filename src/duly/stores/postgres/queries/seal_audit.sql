-- Seal entries. Lock, index: seal_audit_1. Differs: SQLite has one writer.
select at from {schema}.seal_audit_1(%(after)s::bigint, %(ids)s::bigint[], %(digest)s::bytea, %(previous)s::bytea,
                                     %(now)s::timestamptz) as told (at)
