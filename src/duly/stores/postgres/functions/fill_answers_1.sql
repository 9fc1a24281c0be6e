-- Answers requests whose keys were taken. Lock: the rows. Index: answer_pkey. Differs: none.
create function {schema}.fill_answers_1(
    p_keys bytea[], p_statuses int[], p_answers bytea[], p_keep float8[], p_now timestamptz) returns void
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
begin
    update answer a set status = u.status, answer = u.answer,
           expires_at = coalesce(p_now, clock_timestamp()) + u.keep * interval '1 second'
      from unnest(p_keys, p_statuses, p_answers, p_keep) as u (key, status, answer, keep)
     where a.key = u.key and a.answer is null;
end
$$;
