-- Where rules stand. Lock: none. Index: the table, one row per rule and target. Differs: none.
create function {schema}.alerts_1() returns setof {schema}.alert
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select a.* from alert a order by a.rule collate "C", a.target collate "C"
$$;
