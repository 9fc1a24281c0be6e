-- Enqueues one follow-up that has keys. When its idempotency key was used for other arguments, nothing is enqueued and the
-- parent's note says so. False when another transaction holds one of the keys for longer than a moment.
-- Lock: those of store_jobs_2, for 50 ms at most. Index: follow_pkey. Differs: SQLite has one writer.
create function {schema}.follow_keyed_2(p_id bigint, p_kind int, p_position int, p_own boolean, p_now timestamptz) returns boolean
language plpgsql set lock_timeout = '50ms' as $$
declare
    v_spec jsonb := (
        select follow_spec_2(f.id, f.spec) from follow f where f.id = p_id and f.kind = p_kind and f.position = p_position);
    v_told record;
    v_note text;
begin
    select s.id, s.outcome into v_told from store_jobs_2(jsonb_build_array(v_spec), null, p_own, p_now) s;
    if v_told.outcome = 'reused' then
        v_note := format('its follow-up %s was not enqueued: its idempotency key was used for job %s with other arguments',
                         v_spec ->> 'task', v_told.id);
        update finished f set note = concat_ws('; ', f.note, v_note) where f.id = p_id;
        update dead d set note = concat_ws('; ', d.note, v_note) where d.id = p_id;
    end if;
    return true;
exception when lock_not_available or deadlock_detected then
    return false;
end
$$;
