-- Whether arguments fulfil a condition, as core.filters has it: a path, an operator, a value. What is absent, or of another kind
-- than the value, never matches.
-- Lock: none. Index: none. Differs: SQLite's is Python.
create function {schema}.blocks_1(p_args bytea, p_condition jsonb) returns boolean
language plpgsql immutable as $$
declare
    v_found jsonb;
    v_value jsonb := p_condition -> 'value';
    v_operator text := p_condition ->> 'operator';
begin
    v_found := convert_from(p_args, 'UTF8')::jsonb #> array(select jsonb_array_elements_text(p_condition -> 'path'));
    if v_found is null then
        return false;
    elsif v_operator = '=' then
        return v_found = v_value;
    elsif v_operator = '!=' then
        return v_found <> v_value;
    elsif jsonb_typeof(v_found) <> jsonb_typeof(v_value) or jsonb_typeof(v_value) not in ('number', 'string') then
        return false;
    elsif jsonb_typeof(v_value) = 'string' then
        return case v_operator when '<' then (v_found #>> '{}') collate "C" < v_value #>> '{}'
                               when '<=' then (v_found #>> '{}') collate "C" <= v_value #>> '{}'
                               when '>' then (v_found #>> '{}') collate "C" > v_value #>> '{}'
                               else (v_found #>> '{}') collate "C" >= v_value #>> '{}' end;
    end if;
    return case v_operator when '<' then v_found < v_value when '<=' then v_found <= v_value
                           when '>' then v_found > v_value else v_found >= v_value end;
exception when data_exception or untranslatable_character then
    -- Characters that jsonb has not.
    return false;
end
$$;
