-- Applies the usual end: completions of first runs without a result; answers how many were live. See apply_ends_2.
-- Lock: the claimed rows FOR UPDATE, in the order given. A row that was moved by an extension between our snapshot and the
-- lock cannot be deleted by its place: then the call fails as repeatable, and its caller repeats it. Then settle_ends_1's.
-- Index: claimed_id, job_pkey, progress_pkey, wish_pkey. Differs: PostgreSQL only.
create function {schema}.apply_completions_2(
    p_incarnations bigint[], p_ids bigint[], p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[],
    p_notes text[], p_elapsed float8[], p_own boolean, p_now timestamptz
) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    v_held bigint;
    v_gone bigint;
    v_rich bigint[];
begin
    with held as materialized (
        select u.*, c.tid, c.claimed_at, j.queue_key, j.enqueued_at, j.queue, j.task, j.tenant, j.correlation_id, j.extras
          from unnest(p_incarnations, p_ids, p_failed, p_lost, p_interrupted, p_snoozed, p_notes, p_elapsed)
            as u (incarnation, id, failed, lost, interrupted, snoozed, note, elapsed)
         cross join lateral (
            select c.ctid as tid, c.claimed_at from claimed c
             where c.incarnation = u.incarnation and c.id = u.id and c.run = 1 for update) c
         cross join lateral (
            select j.queue_key, j.enqueued_at, j.queue, j.task, j.tenant, j.correlation_id, j.extras
              from job j where j.id = u.id offset 0) j
    ), gone as (
        delete from claimed where ctid = any(array(select h.tid from held h)) returning 1
    ), told as (
        delete from progress where id = any(array(select h.id from held h))
    ), granted as (
        delete from wish where id = any(array(select h.id from held h))
    ), finishing as (
        insert into finished (id, queue_key, enqueued_at, started_at, finished_at, incarnation, run, failed, lost, interrupted,
                              snoozed, status, queue, task, tenant, correlation_id, note)
        select h.id, h.queue_key, h.enqueued_at,
               case when h.elapsed is not null then greatest(h.claimed_at, p_now - h.elapsed * interval '1 second') end, p_now,
               h.incarnation, 1, coalesce(h.failed, 0), coalesce(h.lost, 0), coalesce(h.interrupted, 0),
               coalesce(h.snoozed, 0), 'completed', h.queue, h.task, h.tenant, h.correlation_id, h.note
          from held h
    )
    select count(*), array_agg(h.id) filter (where h.extras <> 0), (select count(*) from gone)
      into v_held, v_rich, v_gone from held h;
    if v_gone < v_held then
        raise exception 'an attempt was extended meanwhile' using errcode = '40001';
    end if;
    if v_rich is not null then
        perform settle_ends_1(v_rich, array_fill('completed'::text, array[cardinality(v_rich)]), p_own, p_now);
    end if;
    return v_held;
end
$$;
