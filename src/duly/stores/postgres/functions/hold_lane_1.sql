-- Writes down what a lane's limit has let start in this exchange. Lock: the limit_state row is the caller's. Index: claimed_pkey,
-- hold_pkey, limit_state_pkey. Differs: SQLite's is Python.
create function {schema}.hold_lane_1(p_incarnation bigint, p_key bigint, p_lane bigint, p_started int, p_now timestamptz)
returns void
language plpgsql as $$
declare
    v_open record;
begin
    select o.* into v_open from open_limits_1(array[p_key], p_now) o;
    if v_open.counted then
        insert into hold (key, id, incarnation)
        select p_key, c.id, p_incarnation from claimed c
         where c.incarnation = p_incarnation and c.queue = p_lane and c.claimed_at = p_now and c.extras & 256 <> 0
           -- Not by EXISTS, which the planner may answer from the whole of the table.
           and (select true from hold h where h.key = p_key and h.id = c.id and h.incarnation = p_incarnation) is null
            on conflict (key, id) do update set incarnation = excluded.incarnation, until = null;
    end if;
    if v_open.pace is not null then
        update limit_state s set tat = greatest(s.tat, p_now) + p_started * v_open.pace where s.key = p_key;
        perform time_lane_1(p_key, p_now);
    end if;
end
$$;
