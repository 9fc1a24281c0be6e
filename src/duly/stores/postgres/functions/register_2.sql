-- A new worker incarnation. Lock: none. Index: none. Differs: none.
create function {schema}.register_2(
    p_host text, p_pid int, p_supervisor text, p_queues text[], p_known jsonb, p_lease float8, p_heartbeat float8, p_slots int,
    p_version text, p_now timestamptz
) returns bigint
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_incarnation bigint := nextval('incarnation');
begin
    insert into worker (incarnation, beat_at, progress_at, pid, slots, started_at, lease, heartbeat, host, supervisor, version,
                        queues, known, bound_tasks, bound_queues)
    values (v_incarnation, v_now, v_now, p_pid, p_slots, v_now, p_lease * interval '1 second',
            p_heartbeat * interval '1 second', p_host, p_supervisor, p_version, p_queues, p_known,
            (select b.tasks from bounds_1() b), (select b.queues from bounds_1() b));
    return v_incarnation;
end
$$;
