-- Stores or replaces a schedule at run time; the same definition again changes nothing.
-- Lock: its row. Index: schedule_pkey. Differs: none.
create function {schema}.put_schedule_1(p_name text, p_definition jsonb, p_first timestamptz, p_now timestamptz) returns void
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    insert into schedule as s (name, origin, definition, next_at, created_at)
    values (p_name, '', p_definition, p_first, coalesce(p_now, clock_timestamp()))
        on conflict (name) do update set origin = '', definition = excluded.definition,
            next_at = case when s.definition = excluded.definition then s.next_at else excluded.next_at end,
            failure = case when s.definition = excluded.definition then s.failure end,
            failed_at = case when s.definition = excluded.definition then s.failed_at end,
            failures = case when s.definition = excluded.definition then s.failures else 0 end
         where s.origin <> '' or s.definition <> excluded.definition;
end
$$;
