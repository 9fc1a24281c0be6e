-- Deletes everything about jobs whose final row the caller has just deleted.
-- Lock: the rows; nobody else writes those of a final job. Index: the tables' id indexes. Differs: none.
create function {schema}.forget_jobs_2(p_ids bigint[]) returns void
language plpgsql as $$
declare
    v_extras int;
begin
    with gone as (delete from job where id = any(p_ids) returning extras)
    select bit_or(g.extras::int) into v_extras from gone g;
    delete from job_tag where id = any(p_ids);
    delete from attempt where id = any(p_ids);
    delete from result where id = any(p_ids);
    delete from progress where id = any(p_ids);
    delete from wish where id = any(p_ids);
    delete from step where id = any(p_ids);
    if v_extras <> 0 then
        delete from follow where id = any(p_ids);
        delete from owed where id = any(p_ids);
        delete from blob where id = any(p_ids);
        perform free_unique_1(p_ids, true);
    end if;
end
$$;
