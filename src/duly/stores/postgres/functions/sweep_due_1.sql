-- Tells whether the sweep of this name is due, and takes its turn: the lock ends with the transaction. Due is real time, at
-- most every second and never more than a twentieth of one backend, whatever clock the jobs live by.
-- Lock: advisory try-lock of the transaction. Index: sweep_pkey. Differs: SQLite's writer is alone.
create function {schema}.sweep_due_1(p_name text, p_most_often_ms int) returns boolean
language plpgsql as $$
begin
    if not pg_try_advisory_xact_lock(door_class_1(), hashtext(p_name)) then
        return false;
    end if;
    return not exists (
        select 1 from sweep s where s.name = p_name and s.last_at <= clock_timestamp()
           and s.last_at > clock_timestamp() - greatest(p_most_often_ms * interval '1 millisecond', 20 * s.cost));
end
$$;
