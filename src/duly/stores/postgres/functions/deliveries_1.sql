-- What became of one change, by sink. Lock: none. Index: alert_delivery_pkey, alert_change_pkey. Differs: none.
create function {schema}.deliveries_1(p_change bigint) returns setof {schema}.delivery_row_1
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select c.id, c.rule, c.target, c.state, c.at, c.value, d.sink, d.state, d.tries, d.next_at, d.last_error
      from alert_delivery d join alert_change c on c.id = d.change_id
     where d.change_id = p_change order by d.sink collate "C"
$$;
