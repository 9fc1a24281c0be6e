-- Changes of rules, the newest first. Lock: none. Index: alert_change_pkey, backwards. Differs: none.
create function {schema}.alert_changes_1(p_before bigint, p_most int) returns setof {schema}.alert_change
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select c.* from alert_change c where c.id < coalesce(p_before, 9223372036854775807) order by c.id desc limit p_most
$$;
