-- Keeps a waiting job from being claimed until the transaction ends; false when it no longer waits in that table.
-- p_place: 1 ready, 2 scheduled, 3 blocked. Lock: its row, FOR UPDATE when it is to be replaced, else FOR KEY SHARE, waited
-- for: claims hold it for one statement. Index: ready_id, scheduled_pkey, blocked_pkey. Differs: PostgreSQL only.
create function {schema}.hold_waiting_1(p_id bigint, p_place int, p_replace boolean) returns boolean
language plpgsql as $$
begin
    case
        when p_place = 1 and p_replace then perform 1 from ready r where r.id = p_id for update;
        when p_place = 1 then perform 1 from ready r where r.id = p_id for key share;
        when p_place = 2 and p_replace then perform 1 from scheduled s where s.id = p_id for update;
        when p_place = 2 then perform 1 from scheduled s where s.id = p_id for key share;
        when p_replace then perform 1 from blocked b where b.id = p_id for update;
        else perform 1 from blocked b where b.id = p_id for key share;
    end case;
    return found;
end
$$;
