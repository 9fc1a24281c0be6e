-- Entries of the audit. Lock, index: audit_page_1. Differs: none.
select id, at, actor, verb, target, reason, detail
  from {schema}.audit_page_1(%(before)s::bigint, %(actor)s::text, %(verb)s::text, %(target)s::text, %(since)s::timestamptz,
                             %(until)s::timestamptz, %(most)s::int)
