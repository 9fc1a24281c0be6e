-- At most p_most schedules that are due and not paused, the longest due first; in every row the clock and the earliest due
-- time of the others. One row without a name when nothing is due. Lock: none. Index: schedule_next. Differs: none.
create function {schema}.due_schedules_1(p_most int, p_now timestamptz) returns table (
    now timestamptz, others timestamptz, name text, definition text, origin text, next_at timestamptz, paused boolean,
    last_at timestamptz, last_id bigint, waiting boolean, running boolean, fired bigint, missed bigint,
    created_at timestamptz, failure text, failed_at timestamptz, failures bigint)
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_names text[] := array(
        select s.name from schedule s where not s.paused and s.next_at <= v_now order by s.next_at, s.name limit p_most);
    v_others timestamptz := (
        select s.next_at from schedule s where not s.paused order by s.next_at, s.name offset cardinality(v_names) limit 1);
begin
    if cardinality(v_names) = 0 then
        now := v_now;
        others := v_others;
        return next;
        return;
    end if;
    return query
    select v_now, v_others, s.* from schedules_1() s where s.name = any(v_names) order by s.next_at, s.name;
end
$$;
