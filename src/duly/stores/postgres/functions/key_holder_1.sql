-- Whether a job still holds the unique key that it took when it had p_run claims, and where it stands: 1 ready, 2 scheduled,
-- 3 blocked, 4 running. One statement over all of these tables, so that no move hides it.
-- Lock: none. Index: the tables' id indexes. Differs: none.
create function {schema}.key_holder_1(
    p_id bigint, p_run int, p_live boolean, p_now timestamptz, out place int, out taken boolean)
language plpgsql as $$
begin
    select x.place, (p_live or x.place < 4 and x.run = p_run) and (x.expires_at <= p_now) is not true
      into place, taken
      from (select 1 as place, r.run, r.expires_at from ready r where r.id = p_id
             union all
            select 2, s.run, s.expires_at from scheduled s where s.id = p_id
             union all
            select 3, b.run, b.expires_at from blocked b where b.id = p_id
             union all
            select 4, c.run, null from claimed c where c.id = p_id) x;
    taken := coalesce(taken, false);
end
$$;
