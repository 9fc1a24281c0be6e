-- What the newest override in force says of a limit. Lock: none. Index: override_key. Differs: SQLite keeps them in memory.
create function {schema}.live_override_1(p_key bigint, p_now timestamptz) returns jsonb
language plpgsql stable as $$
begin
    return (select o.value from override o
             where o.key = p_key and o.kind = 'limit' and o.lifted_at is null and (o.until is null or o.until > p_now)
             order by o.key desc, o.id desc limit 1);
end
$$;
