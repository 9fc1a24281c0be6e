-- Applies the usual end: completions of first runs with at most a small result; answers the jobs that were not live, but for
-- those whose same end an earlier call applied; NULL for none.
-- Lock: the claimed rows by their deletion, in the order of their places; a deadlock is repeated by the caller. A row that an
-- extension moves or another transaction ends between our snapshot and the deletion is missed: then the call fails as
-- repeatable, and its caller repeats it. Then keys as free_unique_1, and settle_ends_1's, for those with follow-ups or versions.
-- Index: claimed_id, wish_pkey. Differs: PostgreSQL only.
create function {schema}.apply_completions_2(
    p_incarnation bigint, p_ids bigint[], p_elapsed float8[], p_results bytea[], p_wished boolean, p_now timestamptz
) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
    v_held bigint[];
    v_gone bigint;
    v_rich bigint[];
    v_keyed bigint[];
    v_left int;
begin
    with held as materialized (
        select u.id, u.elapsed, u.result, c.tid, c.queue, c.claimed_at, c.enqueued_at, c.queue_name, c.task_name, c.tenant,
               c.correlation_id, c.extras
          from unnest(p_ids, p_elapsed, p_results) as u (id, elapsed, result)
         cross join lateral (
            select c.ctid as tid, c.queue, c.claimed_at, c.enqueued_at, c.queue_name, c.task_name, c.tenant, c.correlation_id,
                   c.extras
              from claimed c
             where c.incarnation = p_incarnation and c.id = u.id and c.run = 1 and c.task_name is not null offset 0) c
    ), gone as (
        delete from claimed where ctid = any(array(select h.tid from held h)) returning 1
    ), finishing as (
        -- The lane of a first run is its queue's own.
        insert into finished (id, queue_key, enqueued_at, started_at, finished_at, incarnation, run, failed, lost, interrupted,
                              snoozed, status, queue, task, tenant, correlation_id, result)
        select h.id, h.queue, h.enqueued_at,
               case when h.elapsed is not null then greatest(h.claimed_at, p_now - h.elapsed * interval '1 second') end, p_now,
               p_incarnation, 1, 0, 0, 0, 0, 'completed', h.queue_name, h.task_name, h.tenant, h.correlation_id, h.result
          from held h
         -- Where one was missed nothing is told, so that the call fails as repeatable and not for a second end of that job.
         where (select count(*) from gone) = (select count(*) from held)
    )
    select coalesce(array_agg(h.id), '{}'), array_agg(h.id) filter (where h.extras & 9 <> 0),
           array_agg(h.id) filter (where h.extras & 13 = 4), (select count(*) from gone)
      into v_held, v_rich, v_keyed, v_gone from held h;
    if v_gone < cardinality(v_held) then
        raise exception 'an attempt was extended or ended meanwhile' using errcode = '40001';
    end if;
    if p_wished then
        delete from wish where id = any(v_held);
    end if;
    if v_keyed is not null then
        perform free_unique_1(v_keyed, true);
    end if;
    if v_rich is not null then
        perform settle_ends_1(v_rich, array_fill('completed'::text, array[cardinality(v_rich)]), true, p_now);
    end if;
    v_left := cardinality(p_ids) - cardinality(v_held);
    if v_left = 0 then
        return null;
    end if;
    -- Claimed by a worker of the previous release, or not held.
    return (
        select array_agg(a.id)
          from (select array_agg(u.id) as ids, array_agg(u.elapsed) as elapsed, array_agg(u.result) as results
                  from unnest(p_ids, p_elapsed, p_results) as u (id, elapsed, result) where u.id <> all(v_held)) l
         cross join lateral apply_ends_2(
            array_fill(p_incarnation, array[v_left]), l.ids, array_fill(1, array[v_left]),
            array_fill('complete'::text, array[v_left]), array_fill('completed'::text, array[v_left]), null, null, null, null,
            null, l.results, null, null, null, null, null, null, l.elapsed, true, p_now) a);
end
$$;
