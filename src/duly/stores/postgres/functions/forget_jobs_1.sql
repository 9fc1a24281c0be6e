-- Deletes everything about jobs whose final row the caller has just deleted.
-- Lock: the rows; nobody else writes those of a final job. Index: the tables' id indexes. Differs: none.
create function {schema}.forget_jobs_1(p_ids bigint[]) returns void
language plpgsql as $$
begin
    delete from job where id = any(p_ids);
    delete from job_tag where id = any(p_ids);
    delete from attempt where id = any(p_ids);
    delete from result where id = any(p_ids);
    delete from progress where id = any(p_ids);
    delete from wish where id = any(p_ids);
end
$$;
