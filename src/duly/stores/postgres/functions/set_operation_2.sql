-- Pauses, resumes or cancels a bulk act that has not ended. Lock: its row. Index: operation_pkey. Differs: none.
create function {schema}.set_operation_2(
    p_id bigint, p_state text, p_verb text, p_by text, p_reason text, p_now timestamptz) returns setof {schema}.operation
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    return query
    update operation o set state = p_state,
           ended_at = case when p_state = 'cancelled' then coalesce(p_now, clock_timestamp()) end
     where o.id = p_id and o.state in ('running', 'paused')
    returning o.*;
    if found then
        perform note_act_2(p_verb, 'operation:' || p_id, p_by, p_reason, '{}', p_now);
    end if;
end
$$;
