-- Notes on a dead letter that an edited job runs in its place, and who did that. Lock: its row. Index: dead_pkey.
-- Differs: none.
create function {schema}.succeed_dead_1(
    p_id bigint, p_successor bigint, p_note text, p_by text, p_reason text, p_detail text, p_now timestamptz) returns void
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    update dead d set successor = p_successor, note = concat_ws('; ', d.note, p_note) where d.id = p_id;
    perform note_act_2('edit', 'job:' || p_id, p_by, p_reason, p_detail, p_now);
end
$$;
