-- What stands around one job: how many are ready before it in its lane and before it in its ordering key (counted to p_most), who
-- serves its queue and knows its task, who owns its key, the limits that it takes and some of the jobs that hold them.
-- Lock: none. Index: ready_id, ready_pkey, keyed_pkey, key_head_pkey, hold_pkey and those of limits_of_1. Differs: none.
create function {schema}.facts_1(
    p_id bigint, p_most int, out ahead int, out serving int, out knowing int, out head bigint, out key_paused boolean,
    out before int, out limits text[], out held_names text[], out held_ids bigint[])
language plpgsql stable security definer
set search_path = {schema}, pg_temp as $$
#variable_conflict use_column
declare
    v_job record;
    v_lane record;
    v_key bigint;
begin
    select j.queue, j.task_key, j.tenant, j.ordering_key into v_job from job j where j.id = p_id;
    select r.queue, r.tenant, r.priority, r.pos into v_lane from ready r where r.id = p_id;
    ahead := 0;
    if found then
        select count(*) into facts_1.ahead from (
            select 1 from ready r
             where r.queue = v_lane.queue and r.tenant = v_lane.tenant and (r.priority, r.pos) < (v_lane.priority, v_lane.pos)
             order by r.queue, r.tenant, r.priority, r.pos limit p_most) x;
    end if;
    select count(*), count(*) filter (where w.known ? v_job.task_key::text) into facts_1.serving, facts_1.knowing
      from worker w where v_job.queue = any(w.queues) and not w.draining;
    key_paused := false;
    before := 0;
    if v_job.ordering_key is not null then
        v_key := key_of_1(ordering_name_1(v_job.queue, v_job.tenant, v_job.ordering_key));
        -- One that has lost its place owns the key only until somebody looks.
        select h.id, h.paused into facts_1.head, facts_1.key_paused from key_head h
         where h.key = v_key and exists (select 1 from keyed k where k.key = v_key and k.id = h.id);
        key_paused := coalesce(facts_1.key_paused, false)
                      or exists (select 1 from keyed k where k.key = v_key and k.id = facts_1.head and k.paused);
        select count(*) into facts_1.before from (
            select 1 from keyed k where k.key = v_key and k.id < p_id order by k.key, k.id limit p_most) x;
    end if;
    limits := array(select l.name from limits_of_1(array[p_id]) l where l.name not like 'block:%' order by 1);
    select coalesce(array_agg(n.name order by n.name, h.id), '{}'), coalesce(array_agg(h.id order by n.name, h.id), '{}')
      into facts_1.held_names, facts_1.held_ids
      from unnest(limits || array['queue:' || v_job.queue, 'tenant:' || v_job.queue || '=' || v_job.tenant]) as n (name)
     cross join lateral (
        select h.id from hold h where h.key = key_of_1(n.name) and h.id > 0 order by h.key, h.id limit 5) h;
end
$$;
