-- How a job ended that is no longer kept, as its idempotency record knows. Lock: none. Index: idempotency_id. Differs: none.
create function {schema}.answer_1(p_id bigint, p_now timestamptz)
returns table (status text, ended_at timestamptz, result bytea, reason text)
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
begin
    return query
    select x.status, x.ended_at, x.result, x.reason
      from (select i.status, i.ended_at, i.result, i.reason, i.until from idempotency i where i.id = p_id offset 0) x
     where x.status is not null and x.until > coalesce(p_now, clock_timestamp())
     order by x.until desc limit 1;
end
$$;
