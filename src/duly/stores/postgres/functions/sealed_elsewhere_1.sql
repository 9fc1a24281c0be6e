-- How many payloads of one key stand where they are not encrypted anew. Lock: none. Index: none, it is asked by hand.
-- Differs: none.
create function {schema}.sealed_elsewhere_1(p_key text) returns table (place text, number bigint)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select 'follow-ups', count(*) from follow where position(p_key in spec::text) > 0
    union all
    select 'schedules', count(*) from schedule where position(p_key in definition::text) > 0
    union all
    select 'kept answers', count(*) from idempotency where position(convert_to(p_key, 'UTF8') in result) > 0
$$;
