-- Pauses a queue or a task; a second pause replaces the first. Lock: its row. Index: pause_pkey. Differs: none.
create function {schema}.pause_2(
    p_target text, p_key bigint, p_lasting float8, p_by text, p_reason text, p_now timestamptz, out until timestamptz,
    out at timestamptz)
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
#variable_conflict use_column
begin
    at := coalesce(p_now, clock_timestamp());
    until := at + p_lasting * interval '1 second';
    insert into pause as p (target, key, until, by, reason, at)
    values (p_target, p_key, pause_2.until, p_by, p_reason, pause_2.at)
        on conflict (target) do update set until = excluded.until, by = excluded.by, reason = excluded.reason, at = excluded.at;
    perform note_act_2('pause', p_target, p_by, p_reason, '{}', pause_2.at);
end
$$;
