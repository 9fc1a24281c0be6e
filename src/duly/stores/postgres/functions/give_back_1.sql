-- Gives back what a permit has taken; false when nothing is left of it. Lock: hold rows that are nobody else's. Index: hold_pkey.
-- Differs: none.
create function {schema}.give_back_1(p_names text[], p_id bigint, p_incarnation bigint, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_keys bigint[];
    v_left boolean;
begin
    with gone as (
        delete from hold h using unnest(p_names) as u (name)
         where h.key = key_of_1(u.name) and h.id = p_id and h.incarnation = p_incarnation
        returning h.key, h.until
    )
    select array_agg(g.key), bool_and(g.until is null or g.until > v_now) into v_keys, v_left from gone g;
    if v_keys is not null then
        insert into released (due, kind, key) select '-infinity'::timestamptz, 2, u.key from unnest(v_keys) as u (key);
        perform ring_1();
    end if;
    return coalesce(v_left, cardinality(p_names) = 0);
end
$$;
