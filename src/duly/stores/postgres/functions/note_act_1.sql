-- Who did what by hand. Lock: none. Index: none. Differs: none.
create function {schema}.note_act_1(p_verb text, p_by text, p_reason text, p_jobs bigint, p_now timestamptz) returns void
language plpgsql as $$
begin
    insert into act (at, verb, by, reason, jobs) values (p_now, p_verb, p_by, p_reason, p_jobs);
end
$$;
