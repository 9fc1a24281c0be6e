-- Write progress and cursors; everything held, and whether its cancel is wished. Lock, index: report_2. Differs: none.
select id, run, wished from {schema}.report_2(
    %(incarnation)s::bigint, %(ids)s::bigint[], %(runs)s::int[], %(done)s::bigint[], %(of)s::bigint[], %(notes)s::text[],
    %(cursor_ids)s::bigint[], %(cursor_runs)s::int[], %(cursor_names)s::text[], %(cursor_positions)s::bigint[],
    %(now)s::timestamptz)
