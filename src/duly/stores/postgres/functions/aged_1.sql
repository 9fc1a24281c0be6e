-- How many of the next p_wanted jobs, after p_given ones, are to be the oldest, as core.ageing. Lock: none. Index: none.
-- Differs: SQLite's is Python.
create function {schema}.aged_1(p_given bigint, p_wanted int) returns int
language sql immutable parallel safe as $$
    select case when p_wanted >= 64 then p_wanted / 8
                else (select count(*)::int from generate_series(p_given, p_given + p_wanted - 1) n
                       where (n * 2654435769) % 4294967296 >= 3758096384) end
$$;
