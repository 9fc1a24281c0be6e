-- How many more may start in a queue, and whether its limit keeps holders; room is NULL where nothing bounds it. Notes when it
-- opens where none may. While another claim is in it there is no room here: it may leave jobs behind, so `again` says when to
-- look. No word is left, which everybody would have to pay: what is ready is found by any claim.
-- Lock: the limit_state row of the queue, as lock_limits_1. Index: those of lock_limits_1 and open_limits_1.
-- Differs: SQLite has one writer.
create function {schema}.open_lane_1(p_queue text, p_now timestamptz, out key bigint, out room int, out again timestamptz)
language plpgsql as $$
#variable_conflict use_column
declare
    v_open record;
begin
    key := key_of_1('queue:' || p_queue);
    perform from limit_state s where s.key = open_lane_1.key for update skip locked;
    if not found and ((select true from limit_state s where s.key = open_lane_1.key)
                      or lock_limits_1(array[key], array['queue:' || p_queue], array[key], p_now) = '{}') then
        room := 0;
        again := p_now + interval '50 milliseconds';
        return;
    end if;
    select o.* into v_open from open_limits_1(array[open_lane_1.key], p_now) o;
    room := case when v_open.closed_until is not null then 0
                 else least(v_open.free, floor(v_open.burst - extract(epoch from greatest(v_open.tat, p_now) - p_now)
                                               / extract(epoch from v_open.pace) + 1e-6)::int) end;
    perform time_lane_1(open_lane_1.key, p_now) where room <= 0;
end
$$;
