-- Write progress; everything held, and whether its cancel is wished. Lock, index: report_1. Differs: none.
select id, run, wished from {schema}.report_1(
    %(incarnation)s::bigint, %(ids)s::bigint[], %(runs)s::int[], %(done)s::bigint[], %(of)s::bigint[], %(notes)s::text[],
    %(now)s::timestamptz)
