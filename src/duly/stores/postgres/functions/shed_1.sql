-- ready -> shed for the least urgent jobs of the queues that shed and hold more than they may, up to 5,000 a queue and round;
-- how many went.
-- Lock: that of shed_queue_1. Index: ready_pkey, the lanes of the queues that shed.
-- Differs: SQLite does it in select_overfull.
create function {schema}.shed_1(p_now timestamptz) returns int
language plpgsql as $$
declare
    v_queue record;
    v_over int;
    v_shed int := 0;
begin
    for v_queue in
        select q.key, q.max_depth from queue q where q.when_full = 'shed' and q.max_depth is not null order by q.key
    loop
        select count(*) - v_queue.max_depth into v_over from ready r where r.queue = v_queue.key;
        continue when v_over <= 0;
        v_shed := v_shed + shed_queue_1(v_queue.key, least(v_over, 5000), 'queue full', p_now);
    end loop;
    return v_shed;
end
$$;
