-- Refuses arguments that no handler could read: no JSON object, larger than 256 KiB, nested deeper than 64, or with a number
-- that not every reader of JSON keeps as it is. Lock: none. Index: none. Differs: SQLite's producers are Python.
create function {schema}.check_arguments_1(p_args jsonb) returns void
language plpgsql stable as $$
declare
    v_depth int;
    v_number jsonb;
    v_fault text;
begin
    if p_args is null or jsonb_typeof(p_args) <> 'object' then
        raise exception using errcode = '22023', message = format(
            'args must be a JSON object {parameter: value}, not %s; write jsonb_build_object(''name'', value)',
            coalesce(jsonb_typeof(p_args), 'NULL'));
    end if;
    if octet_length(convert_to(p_args::text, 'UTF8')) > 262144 then
        raise exception using errcode = '22023', message = format(
            'args have %s bytes, at most 262144 fit; store the data elsewhere and pass its id',
            octet_length(convert_to(p_args::text, 'UTF8')));
    end if;
    with recursive part (value, depth) as (
        select p_args, 0
         union all
        select e.value, p.depth + 1 from part p cross join lateral (
            select o.value from jsonb_each(case jsonb_typeof(p.value) when 'object' then p.value else '{}' end) o
             union all
            select a.value from jsonb_array_elements(case jsonb_typeof(p.value) when 'array' then p.value else '[]' end) a) e
         where p.depth <= 64
    )
    select max(p.depth) filter (where jsonb_typeof(p.value) in ('object', 'array')),
           (array_agg(p.value) filter (where case jsonb_typeof(p.value) when 'number'
                                             then abs((p.value #>> '{}')::numeric) > 9007199254740992 end))[1]
      into v_depth, v_number from part p;
    if v_depth > 64 then
        v_fault := 'args are nested more than 64 deep; pass a flatter value, or an id';
    elsif v_number is not null then
        v_fault := format('args hold the number %s, beyond 2^53, which not every reader of JSON keeps as it is; pass it as text',
                          left(v_number::text, 40));
    end if;
    if v_fault is not null then
        raise exception using errcode = '22023', message = v_fault;
    end if;
end
$$;
