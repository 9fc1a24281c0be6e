-- Finishes batches whose ends nobody followed, cancels what still waits of cancelled ones, and forgets old ones.
-- Lock: those of finish_batches_1 and cancel_1. Index: batch_finished, job_batch and the tables' id indexes. Differs: none.
create function {schema}.heal_batches_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_batch record;
    v_old bigint[];
begin
    perform finish_batches_1(p_now);
    for v_batch in
        select b.id, b.reason from batch b
         where b.finished_at > p_now - interval '1 day' and b.state = 'cancelled'
           and b.total > b.completed + b.skipped + b.cancelled + b.shed + b.dead
    loop
        perform cancel_1(w.ids, 'duly', coalesce(v_batch.reason, 'its batch is cancelled'), p_now) from (
            select array(
                select j.id from job j where j.batch = v_batch.id
                   and (exists (select from ready r where r.id = j.id) or exists (select from scheduled s where s.id = j.id)
                        or exists (select from blocked b where b.id = j.id))
                 order by j.id limit 1000) as ids) w
          where w.ids <> '{}';
    end loop;
    v_old := array(select b.id from batch b where b.finished_at < p_now - interval '30 days'
                    order by b.finished_at limit 500 for update skip locked);
    if v_old <> '{}' then
        delete from batch where id = any(v_old);
        delete from batch_done where batch = any(v_old);
        delete from follow where id = any(v_old);
        delete from owed where id = any(v_old);
        delete from blob where id = any(v_old);
    end if;
end
$$;
