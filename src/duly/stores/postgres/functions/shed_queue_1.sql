-- ready -> shed for the least urgent jobs of a queue, at most so many, and counts them; how many went. What another transaction has not
-- committed is not seen, what it holds is left.
-- Lock: the rows FOR UPDATE SKIP LOCKED, then turn_away_1's. Index: ready_pkey, the lane of the queue; ready_id.
-- Differs: SQLite does it in select_least_urgent.
create function {schema}.shed_queue_1(p_queue bigint, p_most int, p_reason text, p_now timestamptz) returns int
language plpgsql as $$
declare
    v_moved int;
begin
    with gone as (
        delete from ready where ctid = any(array(
            select x.tid
              from (select r.id from ready r where r.queue = p_queue order by r.priority desc, r.pos desc limit p_most) u
             cross join lateral (
                select r.ctid as tid from ready r where r.id = u.id and r.queue = p_queue for update skip locked) x))
        returning id, run, failed, lost, interrupted, snoozed
    ), ended as (
        select count(*) as moved,
               finish_waiting_3(array_agg(id), array_agg(run), array_agg(failed), array_agg(lost), array_agg(interrupted),
                                array_agg(snoozed), 'shed', array_agg(p_reason), null, p_now)
          from gone
    )
    select e.moved into v_moved from ended e;
    perform turn_away_1(array[p_queue], 2, array[v_moved::bigint], p_now);
    return v_moved;
end
$$;
