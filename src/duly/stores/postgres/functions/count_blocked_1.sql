-- Blocked jobs by lane, with one of them to learn the queue's name from. A table of more than p_pages pages is not read
-- whole: then they are estimated from p_sample pages in each of 64 places.
-- Lock: none. Index: none. Differs: SQLite counts all.
create function {schema}.count_blocked_1(p_pages int, p_sample int)
returns table (queue bigint, id bigint, n bigint, estimated boolean)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_pages bigint := pg_relation_size('blocked') / current_setting('block_size')::int;
begin
    if v_pages <= greatest(p_pages, 64 * p_sample) then
        perform set_config('enable_seqscan', 'on', true);
        return query
        select b.queue, min(b.id), count(*), false from blocked b group by b.queue;
        return;
    end if;
    return query
    select b.queue, min(b.id), count(*) * v_pages / (64 * p_sample), true
      from generate_series(0, 63) place cross join lateral (
            -- A subquery of its own, so that each place is one scan of a range of pages.
            select b.queue, b.id from blocked b
             where b.ctid >= ('(' || place * v_pages / 64 || ',0)')::tid
               and b.ctid < ('(' || place * v_pages / 64 + p_sample || ',0)')::tid offset 0) b
         group by b.queue;
end
$$;
