-- Stores or replaces a schedule at run time; the same definition again changes nothing. Answers the App that declares it, in
-- which case nothing is stored, else ''.
-- Lock: its row. Index: schedule_pkey. Differs: none.
create function {schema}.put_schedule_1(p_name text, p_definition jsonb, p_first timestamptz, p_now timestamptz) returns text
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    insert into schedule as s (name, origin, definition, next_at, created_at)
    values (p_name, '', p_definition, p_first, coalesce(p_now, clock_timestamp()))
        on conflict (name) do update set definition = excluded.definition, next_at = excluded.next_at,
            failure = null, failed_at = null, failures = 0
         where s.origin = '' and s.definition <> excluded.definition;
    return (select s.origin from schedule s where s.name = p_name);
end
$$;
