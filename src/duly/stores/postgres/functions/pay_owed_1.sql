-- Enqueues follow-ups whose keys another transaction held when their parent ended; those still held stay owed. Gives up for
-- this round after ten of those.
-- Lock: owed rows FOR UPDATE SKIP LOCKED, then those of follow_keyed_1. Index: owed_pkey. Differs: PostgreSQL only.
create function {schema}.pay_owed_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_owed record;
    v_held int := 0;
begin
    for v_owed in
        -- In no order, so that the same ten do not stand before all others.
        select x.id, x.kind, x.position
          from (select o.id, o.kind, o.position from owed o limit 1000 for update skip locked) x order by random()
    loop
        if follow_keyed_1(v_owed.id, v_owed.kind, v_owed.position, true, p_now) then
            delete from owed o where o.id = v_owed.id and o.kind = v_owed.kind and o.position = v_owed.position;
        else
            v_held := v_held + 1;
            exit when v_held = 10;
        end if;
    end loop;
end
$$;
