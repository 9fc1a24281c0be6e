-- How many of the next p_wanted jobs, after p_given ones, are to be the oldest, as core.ageing. Lock: none. Index: none.
-- Differs: SQLite's is Python.
create function {schema}.aged_1(p_given bigint, p_wanted int) returns int
language plpgsql immutable as $$
declare
    v_aged int := 0;
begin
    if p_wanted >= 64 then
        return p_wanted / 8;
    end if;
    for v_number in p_given .. p_given + p_wanted - 1 loop
        if v_number * 2654435769 % 4294967296 >= 3758096384 then
            v_aged := v_aged + 1;
        end if;
    end loop;
    return v_aged;
end
$$;
