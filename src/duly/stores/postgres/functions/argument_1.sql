-- The text of an argument: what stands in a string, else its JSON; NULL where it is missing or null. One of more than 200
-- characters becomes its digest.
-- Lock: none. Index: none. Differs: SQLite's is Python.
create function {schema}.argument_1(p_args bytea, p_name text) returns text
language plpgsql immutable as $$
declare
    v_args text := convert_from(p_args, 'UTF8');
    v_value text;
begin
    if v_args like '%\\u%' then
        begin
            v_value := v_args::json ->> p_name;
        exception when data_exception then
            -- Characters that PostgreSQL has not, perhaps in another argument.
            v_value := regexp_replace(v_args, '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\\\u\1', 'g')::json ->> p_name;
        end;
    else
        v_value := v_args::json ->> p_name;
    end if;
    return case when length(v_value) > 200 then 'sha256:' || encode(sha256(convert_to(v_value, 'UTF8')), 'hex') else v_value end;
end
$$;
