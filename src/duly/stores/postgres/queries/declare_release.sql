-- Record what a release of an App declares. Lock, index: declare_3. Differs: none.
select {schema}.declare_3(
    %(origin)s::text, %(release)s::text, %(queues)s::text[], %(owners)s::text[], %(keep)s::float8[], %(keep_dead)s::float8[],
    %(tasks)s::text[], %(task_queues)s::text[], %(priorities)s::int[], %(expires)s::float8[], %(schedules)s::text[],
    %(definitions)s::jsonb, %(first)s::timestamptz[], %(bounds)s::jsonb, %(limits)s::jsonb, %(task_limits)s::jsonb,
    %(now)s::timestamptz)
