-- Notes that tokens were used, at most so often. Lock: their rows, none of which is waited for. Index: token_pkey.
-- Differs: none.
create function {schema}.touch_tokens_1(p_ids bigint[], p_every float8, p_now timestamptz) returns void
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    update token set last_used_at = v_now where id = any(array(
        select t.id from token t
         where t.id = any(p_ids)
           and (t.last_used_at is null or t.last_used_at <= v_now - p_every * interval '1 second')
         for update skip locked));
end
$$;
