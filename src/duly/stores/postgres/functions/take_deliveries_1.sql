-- Changes that these sinks are owed, the oldest first; nobody else is given them for a while.
-- Lock: their rows, none of which is waited for. Index: alert_delivery_due, alert_change_pkey. Differs: none.
create function {schema}.take_deliveries_1(p_sinks text[], p_lasting float8, p_most int, p_now timestamptz)
returns setof {schema}.delivery_row_1
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    return query
    with due as (
        select d.change_id, d.sink from alert_delivery d
         where d.state = 'due' and d.next_at <= v_now and d.sink = any(p_sinks)
         order by d.change_id, d.sink limit p_most for update skip locked
    ), taken as (
        update alert_delivery d set tries = d.tries + 1, next_at = v_now + p_lasting * interval '1 second' from due
         where d.change_id = due.change_id and d.sink = due.sink
        returning d.*
    )
    select c.id, c.rule, c.target, c.state, c.at, c.value, t.sink, t.state, t.tries, t.next_at, t.last_error
      from taken t join alert_change c on c.id = t.change_id
     order by c.id, t.sink;
end
$$;
