-- Gives back the keys of requests that are in flight. Lock: the rows. Index: answer_pkey. Differs: none.
create function {schema}.release_answers_1(p_keys bytea[]) returns void
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    delete from answer a where a.key = any(p_keys) and a.answer is null;
end
$$;
