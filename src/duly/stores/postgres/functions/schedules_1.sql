-- Schedules with where their last job stands. Lock: none. Index: schedule whole, the tables' id indexes. Differs: none.
create function {schema}.schedules_1() returns table (
    name text, definition text, origin text, next_at timestamptz, paused boolean, last_at timestamptz, last_id bigint,
    waiting boolean, running boolean, fired bigint, missed bigint, created_at timestamptz,
    failure text, failed_at timestamptz, failures bigint)
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
begin
    return query
    select s.name, s.definition::text, s.origin, s.next_at, s.paused, s.last_at, s.last_id,
           -- Not by EXISTS, which the planner may answer from the whole of a table.
           coalesce((select true from ready r where r.id = s.last_id limit 1),
                    (select true from scheduled w where w.id = s.last_id),
                    (select true from blocked b where b.id = s.last_id), false),
           coalesce((select true from claimed c where c.id = s.last_id), false), s.fired, s.missed, s.created_at,
           s.failure, s.failed_at, s.failures
      from schedule s order by s.name;
end
$$;
