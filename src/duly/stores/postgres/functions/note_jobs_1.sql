-- Who did what to these jobs, if there are any. Lock, index: note_act_2. Differs: none.
create function {schema}.note_jobs_1(p_verb text, p_ids bigint[], p_by text, p_reason text, p_now timestamptz) returns void
language plpgsql as $$
begin
    if cardinality(p_ids) > 0 then
        perform note_act_2(p_verb, case when cardinality(p_ids) = 1 then 'job:' || p_ids[1] else '' end, p_by, p_reason,
                           '{"jobs":' || cardinality(p_ids) || ',"ids":[' || array_to_string(p_ids, ',') || ']}', p_now);
    end if;
end
$$;
