-- Ready jobs by lane, with one of them to learn the queue's name from and when the one that is ready longest became so. A
-- table of more than p_pages pages is not read whole: then lanes of more than p_exact jobs are estimated from p_sample
-- pages in each of 64 places. Ages are those of the heads, exact with up to 1,000 priorities of all queues together: what stands
-- behind younger jobs, because somebody moved it to that priority, is found while it is among the 1,000 oldest of all.
-- Lock: none. Index: ready_pkey, one probe per lane and priority and up to p_exact rows a lane; ready_id.
-- Differs: SQLite counts all.
create function {schema}.count_ready_1(p_exact int, p_pages int, p_sample int)
returns table (queue bigint, id bigint, n bigint, oldest timestamptz, estimated boolean)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_pages bigint := pg_relation_size('ready') / current_setting('block_size')::int;
    v_sampled jsonb;
    v_oldest jsonb;
    v_left int := 10 * p_exact;
    v_probes int := 1000;
    v_tenant bigint;
    v_priority int;
    v_at timestamptz;
    v_lane bigint;
    v_next bigint := -9223372036854775808;
begin
    if v_pages <= greatest(p_pages, 64 * p_sample) then
        perform set_config('enable_seqscan', 'on', true);
        return query
        select r.queue, min(r.id), count(*), min(r.ready_at), false from ready r group by r.queue;
        return;
    end if;
    select jsonb_object_agg(s.queue, jsonb_build_object('n', s.n, 'oldest', s.oldest)) into v_sampled from (
        select r.queue, count(*) * v_pages / (64 * p_sample) as n, min(r.ready_at) as oldest
          from generate_series(0, 63) place cross join lateral (
            -- A subquery of its own, so that each place is one scan of a range of pages.
            select r.queue, r.ready_at from ready r
             where r.ctid >= ('(' || place * v_pages / 64 || ',0)')::tid
               and r.ctid < ('(' || place * v_pages / 64 + p_sample || ',0)')::tid offset 0) r
         group by r.queue) s;
    select jsonb_object_agg(o.queue, o.oldest) into v_oldest from (
        select x.queue, min(x.ready_at) as oldest
          from (select r.queue, r.ready_at from ready r order by r.id limit 1000) x group by x.queue) o;
    loop
        select r.queue, r.id, r.tenant, r.priority, r.ready_at into v_lane, id, v_tenant, v_priority, v_at
          from ready r where r.queue > v_next order by r.queue, r.tenant, r.priority, r.pos limit 1;
        exit when not found;
        queue := v_lane;
        v_next := v_lane;
        oldest := least(v_at, (v_oldest ->> v_lane::text)::timestamptz,
                        (v_sampled -> v_lane::text ->> 'oldest')::timestamptz);
        while v_probes > 0 loop
            select r.tenant, r.priority, r.ready_at into v_tenant, v_priority, v_at
              from ready r where r.queue = v_lane and (r.tenant, r.priority) > (v_tenant, v_priority)
             order by r.tenant, r.priority, r.pos limit 1;
            exit when not found;
            v_probes := v_probes - 1;
            oldest := least(oldest, v_at);
        end loop;
        n := coalesce((v_sampled -> v_lane::text ->> 'n')::bigint, 0);
        estimated := n > p_exact or v_left <= 0;
        if not estimated then
            select count(*) into n from (select from ready r where r.queue = v_lane limit p_exact + 1) x;
            v_left := v_left - n;
            estimated := n > p_exact;
        end if;
        n := greatest(n, 1);
        return next;
    end loop;
end
$$;
