-- Changes where a rule stands, with what is owed to sinks; NULL when it has changed since, or stands there already.
-- Lock: its row. Index: alert_pkey; the table of changes, for those of long ago. Differs: none.
create function {schema}.change_alert_1(
    p_rule text, p_target text, p_expected bigint, p_state text, p_value text, p_sinks text[], p_kept float8, p_now timestamptz)
returns bigint
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_was alert;
    v_change bigint;
begin
    perform require_read_committed_1();
    insert into alert (rule, target, state, change_id, value) values (p_rule, p_target, 'clear', 0, p_value)
        on conflict do nothing;
    select a.* into v_was from alert a where a.rule = p_rule and a.target = p_target for update;
    if v_was.change_id is distinct from p_expected or v_was.state = p_state then
        return null;
    end if;
    insert into alert_change (rule, target, state, at, value) values (p_rule, p_target, p_state, v_now, p_value)
    returning id into v_change;
    update alert a set state = p_state, change_id = v_change, since = null, changed_at = v_now, value = p_value
     where a.rule = p_rule and a.target = p_target;
    insert into alert_delivery (change_id, sink, state, tries, next_at)
    select v_change, u.sink, 'due', 0, v_now from (select distinct unnest(p_sinks) as sink) u;
    with old as (
        delete from alert_change c where c.at < v_now - p_kept * interval '1 second' returning c.id
    )
    delete from alert_delivery d using old o where d.change_id = o.id;
    return v_change;
end
$$;
