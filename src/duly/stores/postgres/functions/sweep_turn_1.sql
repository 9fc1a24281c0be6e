-- Takes the turn of the sweep of this name if it is due by the jobs' clock and nobody else is at it: at most every p_every
-- seconds, never more than a twentieth of one backend. A clock that went back is no reason to wait.
-- Lock: advisory try-lock of the transaction. Index: sweep_pkey. Differs: SQLite's writer is alone.
create function {schema}.sweep_turn_1(p_name text, p_now timestamptz, p_every float8) returns boolean
language plpgsql as $$
begin
    if not pg_try_advisory_xact_lock(door_class_1(), hashtext(p_name)) then
        return false;
    end if;
    if exists (select 1 from sweep s where s.name = p_name and s.last_at <= p_now
                  and s.last_at > p_now - greatest(p_every * interval '1 second', 20 * s.cost)) then
        return false;
    end if;
    insert into sweep (name, last_at) values (p_name, p_now)
        on conflict (name) do update set last_at = excluded.last_at;
    return true;
end
$$;
