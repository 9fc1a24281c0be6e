-- Moves ready jobs of tenants that stand in the lane of no tenant, because whoever stored them did not know that the queue is
-- fair, into the lanes of their tenants, at their old positions. Looks at the first 500 of a queue, and again while half of them
-- move, 10 times at most: jobs that have no tenant stay, and are looked at again each time.
-- Lock: ready rows FOR UPDATE SKIP LOCKED. Index: ready_pkey, job_pkey. Differs: SQLite's is Python.
create function {schema}.part_lanes_1() returns void
language plpgsql as $$
declare
    v_lane bigint;
    v_moved int;
begin
    for v_lane in select q.key from queue q where q.fair order by q.key loop
        for v_try in 1 .. 10 loop
            with seen as materialized (
                select r.ctid as tid, r.id from ready r
                 where r.queue = v_lane and r.tenant = 0 order by r.queue, r.tenant, r.priority, r.pos limit 500
            ), theirs as materialized (
                select x.tid, j.id, coalesce(j.tenant_key, key_of_1(j.tenant)) as tenant
                  from seen s cross join lateral (
                    select j.id, j.tenant, j.tenant_key from job j where j.id = s.id and j.tenant <> '' offset 0) j
                 cross join lateral (
                    select r.ctid as tid from ready r where r.ctid = s.tid and r.id = s.id for update skip locked) x
            ), known as (
                -- Where it comes back to, and what counts it while it runs.
                update job j set tenant_key = t.tenant from theirs t where j.id = t.id and j.tenant_key is null
            ), gone as (
                delete from ready where ctid = any(array(select t.tid from theirs t))
                returning queue, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at, limited_at
            ), parted as (
                insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed,
                                   expires_at, limited_at)
                select g.queue, t.tenant, g.priority, g.pos, g.id, g.task, g.ready_at, g.run, g.failed, g.lost, g.interrupted,
                       g.snoozed, g.expires_at, g.limited_at
                  from gone g cross join lateral (select t.tenant from theirs t where t.id = g.id) t
                returning id
            )
            select count(*) into v_moved from parted;
            if v_moved > 0 then
                perform ring_1();
            end if;
            exit when v_moved < 250;
        end loop;
    end loop;
end
$$;
