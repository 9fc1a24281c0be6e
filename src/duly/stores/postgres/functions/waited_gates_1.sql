-- What blocked jobs wait behind, each once with the cause, by key: one index probe each, at most 1,000 after p_after.
-- Lock: none. Index: blocked_gate. Differs: SQLite reads them distinct.
create function {schema}.waited_gates_1(p_after bigint default -9223372036854775808)
returns table (gate bigint, cause smallint)
language plpgsql stable as $$
#variable_conflict use_column
begin
    gate := p_after;
    for v_number in 1 .. 1000 loop
        select b.gate, b.cause into gate, cause from blocked b
         where b.gate > waited_gates_1.gate order by b.gate, b.tenant, b.priority, b.pos limit 1;
        exit when not found;
        if cause > 2 then
            return next;
        end if;
    end loop;
end
$$;
