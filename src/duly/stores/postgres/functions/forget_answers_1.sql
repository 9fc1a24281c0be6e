-- Forgets answers that have expired, the oldest first; how many. Lock: their rows, none of which is waited for.
-- Index: answer_expires. Differs: none.
create function {schema}.forget_answers_1(p_most int, p_now timestamptz) returns int
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_gone int;
begin
    delete from answer where key = any(array(
        select a.key from answer a where a.expires_at <= coalesce(p_now, clock_timestamp())
         order by a.expires_at limit p_most for update skip locked));
    get diagnostics v_gone = row_count;
    return v_gone;
end
$$;
