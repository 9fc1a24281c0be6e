-- Moves ready jobs that wait in tenants' lanes of queues which are fair no more into the lane of no tenant, at their old
-- positions; at most 5,000 of a queue in one round.
-- Lock: ready rows FOR UPDATE SKIP LOCKED. Index: ready_pkey, probes per lane; job_pkey. Differs: SQLite's is Python.
create function {schema}.unfair_1() returns void
language plpgsql as $$
declare
    v_lane bigint := -9223372036854775808;
    v_id bigint;
begin
    loop
        select r.queue into v_lane from ready r
         where r.queue > v_lane order by r.queue, r.tenant, r.priority, r.pos limit 1;
        exit when not found;
        v_id := coalesce(
            (select r.id from ready r where r.queue = v_lane and r.tenant < 0 order by r.queue, r.tenant, r.priority, r.pos limit 1),
            (select r.id from ready r where r.queue = v_lane and r.tenant > 0 order by r.queue, r.tenant, r.priority, r.pos limit 1));
        continue when v_id is null or exists (
            select 1 from job j join queue q on q.name = j.queue where j.id = v_id and q.fair);
        with gone as (
            delete from ready where ctid = any(array(
                select r.ctid from ready r where r.queue = v_lane and r.tenant <> 0
                 order by r.queue, r.tenant, r.priority, r.pos limit 5000 for update skip locked))
            returning queue, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at, limited_at
        )
        insert into ready (queue, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at,
                           limited_at)
        select g.queue, g.priority, g.pos, g.id, g.task, g.ready_at, g.run, g.failed, g.lost, g.interrupted, g.snoozed,
               g.expires_at, g.limited_at
          from gone g;
        perform ring_1();
    end loop;
end
$$;
