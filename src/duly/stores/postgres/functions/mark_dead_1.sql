-- Says something of a group of dead letters; what is NULL stays as it is. Lock: its row. Index: dead_group_pkey, died_since_1.
-- Differs: none.
create function {schema}.mark_dead_1(
    p_fingerprint text, p_queue text, p_task text, p_state text, p_owner text, p_note text, p_by text, p_reason text,
    p_detail text, p_now timestamptz) returns setof {schema}.dead_group
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_was dead_group;
    v_died timestamptz;
begin
    perform require_read_committed_1();
    insert into dead_group (fingerprint, queue, task, state, note, by, at)
    values (p_fingerprint, p_queue, p_task, 'new', '', p_by, v_now) on conflict do nothing;
    select g.* into v_was from dead_group g
     where g.fingerprint = p_fingerprint and g.queue = p_queue and g.task = p_task for update;
    if v_was.state = 'fixed' then
        v_died := died_since_1(p_fingerprint, p_queue, p_task, v_was.at);
    end if;
    perform note_act_2('mark', 'dead:' || p_fingerprint, p_by, p_reason, p_detail, v_now);
    return query
    update dead_group g
       set state = coalesce(p_state, case when v_died is null then g.state else 'new' end),
           owner = case when p_owner is null then g.owner else nullif(p_owner, '') end, note = coalesce(p_note, g.note),
           by = p_by, at = v_now,
           regressed_at = case when p_state is null then coalesce(v_died, g.regressed_at) end
     where g.fingerprint = p_fingerprint and g.queue = p_queue and g.task = p_task
    returning g.*;
end
$$;
