-- Moves a running bulk act on by one step; false when it no longer runs or another worker was faster.
-- Lock: its row. Index: operation_pkey. Differs: none.
create function {schema}.advance_operation_1(
    p_id bigint, p_cursor bigint, p_done bigint, p_skipped bigint, p_ended boolean, p_now timestamptz
) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    update operation o set cursor = p_cursor, done = o.done + p_done, skipped = o.skipped + p_skipped,
           state = case when p_ended then 'done' else o.state end,
           ended_at = case when p_ended then coalesce(p_now, clock_timestamp()) end
     where o.id = p_id and o.state = 'running' and o.cursor < p_cursor;
    return found;
end
$$;
