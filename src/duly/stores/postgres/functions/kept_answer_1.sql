-- What is kept under the key of a request. Lock: none. Index: answer_pkey. Differs: none.
create function {schema}.kept_answer_1(p_key bytea, p_now timestamptz)
returns table (token bigint, body_hash bytea, at timestamptz, expires_at timestamptz, status int, answer bytea)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select a.token, a.body_hash, a.at, a.expires_at, a.status, a.answer
      from answer a where a.key = p_key and a.expires_at > coalesce(p_now, clock_timestamp())
$$;
