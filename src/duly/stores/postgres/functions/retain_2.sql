-- Deletes one chunk of finished jobs past their queue's retention, then of announced dead letters past theirs, oldest first.
-- How they ended stays in their idempotency records. Those that still owe a follow-up stay until the sweep has paid it. Keys
-- and versions past their time go, too, a chunk of each. Answers how many jobs went, and 1 where only keys may be left to go.
-- Lock: final rows FOR UPDATE SKIP LOCKED, so that any number of workers may do it. Each queue's walk goes on where it last
-- stopped, so that it does not wade through its own dead entries; when nothing is left from there on, it begins again.
-- Index: finished_order, dead_order, owed_pkey, idempotency_id and those of forget_old_keys_1.
-- A queue that the caller does not know, or not by this key, is kept as long as its owner has declared.
-- Differs: SQLite needs no remembered place.
create function {schema}.retain_2(
    p_keys bigint[], p_keep float8[], p_default float8, p_dead_keys bigint[], p_dead_keep float8[], p_dead_default float8,
    p_notice float8, p_most int, p_now timestamptz
) returns int
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_queue bigint := 9223372036854775807;
    v_name text;
    v_ids bigint[];
    v_last timestamptz;
    v_from timestamptz;
    v_left int := p_most;
    v_more boolean;
begin
    perform require_read_committed_1();
    while v_left > 0 loop
        -- Backwards, to the youngest of each queue: before the oldest stand the dead entries of all that went before.
        select f.queue_key, f.queue into v_queue, v_name from finished f
         where f.queue_key < v_queue order by f.queue_key desc, f.finished_at desc, f.id desc limit 1;
        exit when not found;
        v_from := coalesce((select to_timestamp(s.position / 1e6) - interval '1 second' from sweep s
                             where s.name = 'retain:' || v_queue), '-infinity');
        with gone as (
            delete from finished where ctid = any(array(
                select f.ctid from finished f
                 where f.queue_key = v_queue and f.finished_at >= v_from
                   -- Not by EXISTS, which the planner may answer from the whole of a table.
                   and (select true from owed o where o.id = f.id limit 1) is null
                   and f.finished_at <= v_now - interval '1 second' * coalesce(
                       (select k.keep from unnest(p_keys, p_keep) as k (key, keep) where k.key = v_queue),
                       extract(epoch from (select q.keep from queue q where q.name = v_name))::float8, p_default)
                 order by f.finished_at, f.id limit v_left for update skip locked))
            returning id, status, finished_at, result, reason
        ), kept as (
            update idempotency i set status = g.status, ended_at = g.finished_at, result = g.result, reason = g.reason
              from (select g.*, x.tid from gone g cross join lateral (
                        select k.ctid as tid from idempotency k where k.id = g.id for update skip locked) x) g
             where i.ctid = g.tid
        )
        select array_agg(g.id), max(g.finished_at) into v_ids, v_last from gone g;
        if v_ids is null then
            -- Nothing more from there on: the next round looks from the very front.
            delete from sweep where name = 'retain:' || v_queue;
        else
            perform forget_jobs_2(v_ids);
            v_left := v_left - cardinality(v_ids);
            insert into sweep (name, last_at, position)
            values ('retain:' || v_queue, v_now, extract(epoch from v_last) * 1e6)
                on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
        end if;
    end loop;
    if v_left > 0 then
        with gone as (
            delete from dead where ctid = any(array(
                select d.ctid from dead d
                 where d.announced_at <= v_now - p_notice * interval '1 second'
                   and d.died_at <= v_now - interval '1 second' * coalesce(
                       (select k.keep from unnest(p_dead_keys, p_dead_keep) as k (key, keep) where k.key = d.queue_key),
                       extract(epoch from (select q.keep_dead from queue q where q.name = d.queue))::float8,
                       p_dead_default)
                   and (select true from owed o where o.id = d.id limit 1) is null
                 order by d.queue_key, d.died_at, d.id limit v_left for update skip locked))
            returning id, died_at, reason
        ), kept as (
            update idempotency i set status = 'dead', ended_at = g.died_at, result = null, reason = g.reason
              from (select g.*, x.tid from gone g cross join lateral (
                        select k.ctid as tid from idempotency k where k.id = g.id for update skip locked) x) g
             where i.ctid = g.tid
        )
        select array_agg(g.id) into v_ids from gone g;
        if v_ids is not null then
            perform forget_jobs_2(v_ids);
            v_left := v_left - cardinality(v_ids);
        end if;
        delete from act where at < v_now - interval '400 days';
    end if;
    v_more := forget_old_keys_1(p_most, v_now);
    return greatest(p_most - v_left, v_more::int);
end
$$;
