-- Finishes batches whose ends nobody followed, cancels what still waits of cancelled ones, and forgets old ones.
-- Lock: those of finish_batches_1 and cancel_1, then batches FOR UPDATE SKIP LOCKED. Index: batch_finished, batch_parent,
-- batch_member_pkey and the tables' id indexes. Differs: none.
create function {schema}.heal_batches_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_batch record;
    v_old bigint[];
    v_empty bigint[];
    v_last bigint;
    v_walked int;
begin
    perform finish_batches_1(p_now);
    for v_batch in
        select b.id, b.reason from batch b
         where b.finished_at > p_now - interval '1 day' and b.state = 'cancelled'
           and b.total > b.completed + b.skipped + b.cancelled + b.shed + b.dead
    loop
        perform cancel_1(w.ids, 'duly', coalesce(v_batch.reason, 'its batch is cancelled'), p_now) from (
            select array(
                select m.id from batch_member m where m.batch = v_batch.id
                   and (exists (select from ready r where r.id = m.id) or exists (select from scheduled s where s.id = m.id)
                        or exists (select from blocked b where b.id = m.id))
                 order by m.id limit 1000) as ids) w
          where w.ids <> '{}';
    end loop;
    v_old := array(select b.id from batch b where b.finished_at < p_now - interval '30 days'
                    order by b.finished_at limit 500 for update skip locked);
    -- Those that never ended are of use as long as something of them is there: a dead job may be redriven, more may come.
    select array_agg(w.id) filter (where w.empty), max(w.id), count(*) into v_empty, v_last, v_walked
      from (select b.id, b.finished_at is null and b.created_at < p_now - interval '30 days'
                          and not exists (select 1 from batch_member m where m.batch = b.id)
                          and not exists (select 1 from batch c where c.parent = b.id) as empty
              from batch b
             where b.id > coalesce((select s.position from sweep s where s.name = 'batches'), 0) order by b.id limit 500) w;
    insert into sweep (name, last_at, position) values ('batches', p_now, case when v_walked = 500 then v_last else 0 end)
        on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
    if v_empty is not null then
        v_empty := array(select x.id from unnest(v_empty) as u (id) cross join lateral (
            select b.id from batch b where b.id = u.id for update skip locked) x);
        -- Whoever adds to one holds it until the commit.
        v_old := v_old || array(select u.id from unnest(v_empty) as u (id)
                                 where not exists (select 1 from batch_member m where m.batch = u.id)
                                   and not exists (select 1 from batch c where c.parent = u.id));
    end if;
    if v_old <> '{}' then
        delete from batch where id = any(v_old);
        delete from batch_done where batch = any(v_old);
        delete from follow where id = any(v_old);
        delete from owed where id = any(v_old);
        delete from blob where id = any(v_old);
    end if;
end
$$;
