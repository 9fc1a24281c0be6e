-- A sample per lane for the rates that `status` shows: at most one in 10 s, kept for 2 h.
-- Lock: none (the sweep's turn). Index: ready_pkey whole, claimed_pkey whole, finished_order, dead_order. Differs: none.
create function {schema}.keep_sample_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_last timestamptz := (select s.last_at from sweep s where s.name = 'sample');
begin
    if v_last > p_now - interval '10 seconds' and v_last <= p_now then
        return;
    end if;
    insert into sweep (name, last_at) values ('sample', p_now)
        on conflict (name) do update set last_at = excluded.last_at;
    insert into sample (queue, at, ready, running, ended)
    with waiting as (
        select r.queue, count(*) as n from ready r group by r.queue
    ), running as (
        select c.queue, count(*) as n from claimed c group by c.queue
    ), lanes as (
        select w.queue from waiting w union select r.queue from running r
         union select q.key from queue q
         union select s.queue from sample s where s.at > p_now - interval '10 minutes'
    )
    select l.queue, p_now, coalesce((select w.n from waiting w where w.queue = l.queue), 0),
           coalesce((select r.n from running r where r.queue = l.queue), 0),
           (select count(*) from finished f where f.queue_key = l.queue and f.finished_at > v_last and f.finished_at <= p_now)
         + (select count(*) from dead d where d.queue_key = l.queue and d.died_at > v_last and d.died_at <= p_now)
      from lanes l
        on conflict (queue, at) do nothing;
    delete from sample where at < p_now - interval '2 hours';
end
$$;
