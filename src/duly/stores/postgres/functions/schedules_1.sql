-- Schedules with where their last job stands. Lock: none. Index: schedule whole, the tables' id indexes. Differs: none.
create function {schema}.schedules_1() returns table (
    name text, definition text, origin text, next_at timestamptz, paused boolean, last_at timestamptz, last_id bigint,
    waiting boolean, running boolean, fired bigint, missed bigint, created_at timestamptz)
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
begin
    return query
    select s.name, s.definition::text, s.origin, s.next_at, s.paused, s.last_at, s.last_id,
           exists (select 1 from ready r where r.id = s.last_id)
           or exists (select 1 from scheduled w where w.id = s.last_id)
           or exists (select 1 from blocked b where b.id = s.last_id),
           exists (select 1 from claimed c where c.id = s.last_id), s.fired, s.missed, s.created_at
      from schedule s order by s.name;
end
$$;
