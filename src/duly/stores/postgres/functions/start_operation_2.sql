-- Stores a bulk act over jobs that exist already. Lock: none. Index: none. Differs: none.
create function {schema}.start_operation_2(
    p_verb text, p_filter jsonb, p_rate float8, p_priority int, p_total bigint, p_by text, p_reason text, p_now timestamptz
) returns {schema}.operation
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_operation {schema}.operation;
begin
    insert into operation (verb, filter, state, rate, priority, total, upto, by, reason, created_at)
    values (p_verb, p_filter, 'running', p_rate, p_priority, p_total, (select s.last_value from pos s), p_by, p_reason,
            coalesce(p_now, clock_timestamp()))
    returning * into v_operation;
    perform note_act_2('start', 'operation:' || v_operation.id, p_by, p_reason,
                       json_build_object('verb', p_verb, 'total', p_total, 'filter', p_filter)::text,
                       v_operation.created_at);
    return v_operation;
end
$$;
