-- Refuses a name that core/names.py refuses: what it may hold, and how long it may be. p_separators: further characters,
-- blanks with them.
-- Lock: none. Index: none. Differs: SQLite's producers are Python.
create function {schema}.check_name_1(p_kind text, p_name text, p_most int, p_separators text) returns void
language plpgsql stable as $$
declare
    v_fault text := case
        when p_name is null or p_name ~ '^[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$'
            then 'must not be empty; give it a name'
        when p_name ~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]' then 'holds a control character; remove it'
        when p_name ~ '^[\s\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]|[\s\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]$'
            then 'has blanks around it; remove them'
        when length(p_name) > p_most
            then format('has %s characters; at most %s fit', length(p_name), p_most)
        when p_separators <> '' and p_name ~ ('[\s\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000' || p_separators || ']')
            then 'holds a comma, a colon or a blank, which separate names on the command line; write -, _ or . instead'
    end;
begin
    if v_fault is not null then
        raise exception using errcode = '22023',
            message = format('%s %s %s', p_kind, coalesce(quote_literal(left(p_name, 60)), 'NULL'), v_fault);
    end if;
end
$$;
