-- ready -> shed for the least urgent jobs of the queues that shed and hold more than they may, up to 5,000 a queue and round;
-- how many went. What another transaction has not committed is not seen, what it holds is left.
-- Lock: the rows FOR UPDATE SKIP LOCKED. Index: ready_pkey, the lanes of the queues that shed; ready_id.
-- Differs: SQLite does it in select_overfull and select_least_urgent.
create function {schema}.shed_1(p_now timestamptz) returns int
language plpgsql as $$
declare
    v_queue record;
    v_over int;
    v_moved int;
    v_shed int := 0;
begin
    for v_queue in
        select q.key, q.max_depth from queue q where q.when_full = 'shed' and q.max_depth is not null order by q.key
    loop
        select count(*) - v_queue.max_depth into v_over from ready r where r.queue = v_queue.key;
        continue when v_over <= 0;
        with gone as (
            delete from ready where ctid = any(array(
                select x.tid
                  from (select r.id from ready r where r.queue = v_queue.key
                         order by r.priority desc, r.pos desc limit least(v_over, 5000)) u
                 cross join lateral (
                    select r.ctid as tid from ready r where r.id = u.id and r.queue = v_queue.key for update skip locked) x))
            returning id, run, failed, lost, interrupted, snoozed
        ), ended as (
            select count(*) as moved,
                   finish_waiting_3(array_agg(id), array_agg(run), array_agg(failed), array_agg(lost), array_agg(interrupted),
                                    array_agg(snoozed), 'shed', array_agg('queue full'::text), null, p_now)
              from gone
        )
        select e.moved into v_moved from ended e;
        v_shed := v_shed + v_moved;
    end loop;
    return v_shed;
end
$$;
