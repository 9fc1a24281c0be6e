-- Scheduled jobs by lane, with one of them to learn the queue's name from and when the next is due. A table of more than
-- p_pages pages is not read whole: then all is estimated from p_sample pages in each of 64 places, but for the next due
-- times of lanes among the first 2,000 that are due.
-- Lock: none. Index: scheduled_due, 2,000 rows. Differs: SQLite counts all.
create function {schema}.count_scheduled_1(p_pages int, p_sample int)
returns table (queue bigint, id bigint, n bigint, next_due timestamptz, estimated boolean)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_pages bigint := pg_relation_size('scheduled') / current_setting('block_size')::int;
begin
    if v_pages <= greatest(p_pages, 64 * p_sample) then
        perform set_config('enable_seqscan', 'on', true);
        return query
        select s.queue, min(s.id), count(*), min(s.run_at), false from scheduled s group by s.queue;
        return;
    end if;
    return query
    with sampled as (
        select s.queue, min(s.id) as id, count(*) * v_pages / (64 * p_sample) as n, min(s.run_at) as next_due
          from generate_series(0, 63) place cross join lateral (
            -- A subquery of its own, so that each place is one scan of a range of pages.
            select s.queue, s.id, s.run_at from scheduled s
             where s.ctid >= ('(' || place * v_pages / 64 || ',0)')::tid
               and s.ctid < ('(' || place * v_pages / 64 + p_sample || ',0)')::tid offset 0) s
         group by s.queue
    ), first as (
        select x.queue, min(x.id) as id, count(*) as n, min(x.run_at) as next_due
          from (select s.queue, s.id, s.run_at from scheduled s order by s.run_at, s.id limit 2000) x group by x.queue
    )
    select coalesce(f.queue, a.queue), coalesce(f.id, a.id), greatest(a.n, f.n), least(f.next_due, a.next_due), true
      from sampled a full join first f on f.queue = a.queue;
end
$$;
