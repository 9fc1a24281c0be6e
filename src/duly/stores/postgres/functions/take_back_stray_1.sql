-- Claims whose incarnation has no worker row, and attempts past deadline + grace, fresh heartbeat or not: deleting the
-- claimed row is the fence. Both count as lost.
-- Lock: claimed rows FOR UPDATE SKIP LOCKED, moved in a later statement. Index: claimed_pkey whole, worker_pkey. Differs: none.
create function {schema}.take_back_stray_1(p_grace float8, p_poison int, p_now timestamptz, out orphans int, out overdue int)
language plpgsql as $$
declare
    v_orphans bigint[];
    v_orphan_ids bigint[];
    v_overdue bigint[];
    v_overdue_ids bigint[];
begin
    orphans := 0;
    overdue := 0;
    select array_agg(x.incarnation) filter (where x.orphan), array_agg(x.id) filter (where x.orphan),
           array_agg(x.incarnation) filter (where not x.orphan), array_agg(x.id) filter (where not x.orphan)
      into v_orphans, v_orphan_ids, v_overdue, v_overdue_ids
      from (
        select c.incarnation, c.id, w.incarnation is null as orphan
          from claimed c left join worker w on w.incarnation = c.incarnation
         where w.incarnation is null or c.deadline <= p_now - p_grace * interval '1 second'
         order by c.incarnation, c.id limit 5000 for update of c skip locked) x;
    if v_orphans is not null then
        orphans := take_back_1(v_orphans, v_orphan_ids, array_fill('lose'::text, array[cardinality(v_orphans)]),
                               'its worker''s row is gone', p_poison, false, p_now);
    end if;
    if v_overdue is not null then
        overdue := take_back_1(v_overdue, v_overdue_ids, array_fill('lose'::text, array[cardinality(v_overdue)]),
                               'past its deadline', p_poison, false, p_now);
    end if;
end
$$;
