-- What came of a try: sent, given up, or due again after some seconds. Lock: its row. Index: alert_delivery_pkey. Differs: none.
create function {schema}.settle_delivery_1(
    p_change bigint, p_sink text, p_state text, p_wait float8, p_error text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    update alert_delivery d
       set state = p_state, next_at = coalesce(p_now, clock_timestamp()) + p_wait * interval '1 second',
           last_error = coalesce(p_error, d.last_error)
     where d.change_id = p_change and d.sink = p_sink and d.state = 'due';
    return found;
end
$$;
