-- Stores jobs with keys, follow-ups and the like; plain ones go through enqueue_1. Answers (id, run_at, outcome) in the order
-- asked; no row at all when one of the holders is no longer live; one row of outcome `reused`, with the place of the job and
-- the number of the key's, when an idempotency key came with other arguments: then nothing is stored, and a caller's
-- transaction can go on; one row of outcome `batch STATE` when a batch takes no more jobs, or is missing.
-- Lock: batches FOR SHARE, so that they do not end meanwhile; with p_own, the holder's claimed row FOR KEY SHARE; then those of store_jobs_2, for 10 s at most. Index: claimed_id
-- and those of store_jobs_2. Differs: SQLite takes ids from its sequence row.
create function {schema}.enqueue_3(
    p_specs jsonb, p_args bytea[], p_holder_incarnations bigint[], p_holder_ids bigint[], p_holder_runs int[], p_own boolean,
    p_now timestamptz
) returns table (id bigint, run_at timestamptz, outcome text, place int)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_live int;
    v_reused int;
    v_ids bigint[];
    v_run_at timestamptz[];
    v_outcomes text[];
    v_batch record;
begin
    if p_own then
        perform require_read_committed_1();
        -- Sooner than the connection loses its patience.
        perform set_config('lock_timeout', '10s', true);
        perform 1 from unnest(p_holder_incarnations, p_holder_ids, p_holder_runs) as h (incarnation, id, run)
          cross join lateral (
            select 1 from claimed c where c.incarnation = h.incarnation and c.id = h.id and c.run = h.run for key share) held;
    end if;
    select count(*) into v_live
      from unnest(p_holder_incarnations, p_holder_ids, p_holder_runs) as h (incarnation, id, run)
     cross join lateral (
        select 1 from claimed c where c.incarnation = h.incarnation and c.id = h.id and c.run = h.run offset 0) held;
    if v_live < cardinality(p_holder_ids) then
        return;
    end if;
    if jsonb_path_exists(p_specs, '$[*].batch') then
        for v_batch in
            select distinct (s.spec ->> 'batch')::bigint as id from jsonb_array_elements(p_specs) as s (spec)
             where s.spec ? 'batch' order by 1
        loop
            outcome := coalesce((select b.state from batch b where b.id = v_batch.id for share), 'missing');
            if outcome in ('missing', 'completed', 'cancelled') then
                return query select v_batch.id, null::timestamptz, 'batch ' || outcome, 1;
                return;
            end if;
        end loop;
    end if;
    if not jsonb_path_exists(p_specs, '$[*].idempotency') then
        return query select s.id, s.run_at, s.outcome, s.place from store_jobs_2(p_specs, p_args, p_own, v_now) s;
        return;
    end if;
    -- A subtransaction: what was written before the fault was met is taken back, the caller's own work is not.
    begin
        select array_agg(s.id order by s.place), array_agg(s.run_at order by s.place), array_agg(s.outcome order by s.place),
               min(s.place) filter (where s.outcome = 'reused')
          into v_ids, v_run_at, v_outcomes, v_reused
          from store_jobs_2(p_specs, p_args, p_own, v_now) s;
        if v_reused is not null then
            raise exception 'an idempotency key was used before' using errcode = 'DY002';
        end if;
    exception when sqlstate 'DY002' then
        -- What this very call had put under the key is gone again.
        return query
        select (select i.id from idempotency i
                 where i.key = decode(p_specs -> (v_reused - 1) ->> 'idempotency', 'hex') and i.until > v_now),
               null::timestamptz, 'reused', v_reused;
        return;
    end;
    return query
    select u.id, u.run_at, u.outcome, u.place::int
      from unnest(v_ids, v_run_at, v_outcomes) with ordinality as u (id, run_at, outcome, place) order by u.place;
end
$$;
