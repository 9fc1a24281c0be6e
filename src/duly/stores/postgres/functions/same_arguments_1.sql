-- Whether two stored arguments say the same, though one producer wrote them in another order or with other blanks.
-- Lock: none. Index: none. Differs: SQLite has one producer, whose bytes are equal for equal calls.
create function {schema}.same_arguments_1(p_one bytea, p_other bytea) returns boolean
language plpgsql stable as $$
begin
    return convert_from(p_one, 'UTF8')::jsonb = convert_from(p_other, 'UTF8')::jsonb;
exception when others then
    return false;
end
$$;
