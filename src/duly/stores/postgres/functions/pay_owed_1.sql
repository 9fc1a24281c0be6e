-- Enqueues follow-ups whose keys another transaction held when their parent ended; those still held stay owed.
-- Lock: owed rows FOR UPDATE SKIP LOCKED, then those of follow_keyed_1. Index: owed_pkey. Differs: PostgreSQL only.
create function {schema}.pay_owed_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_owed record;
begin
    for v_owed in
        delete from owed where ctid = any(array(
            select o.ctid from owed o order by o.id, o.kind, o.position limit 20 for update skip locked))
        returning id, kind, position
    loop
        perform follow_keyed_1(v_owed.id, v_owed.kind, v_owed.position, true, p_now);
    end loop;
end
$$;
