-- Count calls for the breakers. Lock, index: observe_1. Differs: none.
select told.name from {schema}.observe_1(%(names)s::text[], %(calls)s::bigint[], %(failures)s::bigint[], %(now)s::timestamptz) as told (name)
