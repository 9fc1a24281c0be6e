-- Keeps how far live attempts have come through their items. Lock: their claimed rows FOR UPDATE, in the order given (callers
-- sort), until the commit: no cursor is written after the end of its attempt. Index: claimed_pkey, step_pkey. Differs: none.
create function {schema}.keep_cursors_1(
    p_incarnation bigint, p_ids bigint[], p_runs int[], p_names text[], p_positions bigint[]) returns void
language plpgsql as $$
begin
    perform 1 from unnest(p_ids, p_runs) as u (id, run) cross join lateral (
        select 1 from claimed c where c.incarnation = p_incarnation and c.id = u.id and c.run = u.run for update) held;
    insert into step (id, name, position)
    select u.id, u.name, u.position
      from unnest(p_ids, p_runs, p_names, p_positions) as u (id, run, name, position) cross join lateral (
        select 1 from claimed c where c.incarnation = p_incarnation and c.id = u.id and c.run = u.run offset 0) held
        on conflict (id, name) do update set position = excluded.position;
end
$$;
