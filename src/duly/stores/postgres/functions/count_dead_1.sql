-- Dead letters by queue. A table of more than p_pages pages is not read whole: then queues of more than p_exact letters are
-- estimated from p_sample pages in each of 64 places.
-- Lock: none. Index: dead_order, one probe per queue and up to p_exact rows of each. Differs: SQLite counts all.
create function {schema}.count_dead_1(p_exact int, p_pages int, p_sample int)
returns table (queue text, n bigint, estimated boolean)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_pages bigint := pg_relation_size('dead') / current_setting('block_size')::int;
    v_sampled jsonb;
    v_left int := 10 * p_exact;
    v_next bigint := -9223372036854775808;
begin
    if v_pages <= greatest(p_pages, 64 * p_sample) then
        perform set_config('enable_seqscan', 'on', true);
        return query
        select d.queue, count(*), false from dead d group by d.queue;
        return;
    end if;
    select jsonb_object_agg(s.queue_key, s.n) into v_sampled from (
        select d.queue_key, count(*) * v_pages / (64 * p_sample) as n
          from generate_series(0, 63) place cross join lateral (
            -- A subquery of its own, so that each place is one scan of a range of pages.
            select d.queue_key from dead d
             where d.ctid >= ('(' || place * v_pages / 64 || ',0)')::tid
               and d.ctid < ('(' || place * v_pages / 64 + p_sample || ',0)')::tid offset 0) d
         group by d.queue_key) s;
    loop
        select d.queue_key, d.queue into v_next, queue
          from dead d where d.queue_key > v_next order by d.queue_key, d.died_at, d.id limit 1;
        exit when not found;
        n := coalesce((v_sampled ->> v_next::text)::bigint, 0);
        estimated := n > p_exact or v_left <= 0;
        if not estimated then
            select count(*) into n from (select from dead d where d.queue_key = v_next limit p_exact + 1) x;
            v_left := v_left - n;
            estimated := n > p_exact;
        end if;
        n := greatest(n, 1);
        return next;
    end loop;
end
$$;
