-- Notes that the sweep of this name ran and what it cost. Lock: sweep_due_1's. Index: sweep_pkey. Differs: PostgreSQL only.
create function {schema}.sweep_done_1(p_name text, p_began timestamptz) returns void
language plpgsql as $$
begin
    insert into sweep (name, last_at, cost) values (p_name, clock_timestamp(), clock_timestamp() - p_began)
        on conflict (name) do update set last_at = excluded.last_at, cost = excluded.cost;
end
$$;
