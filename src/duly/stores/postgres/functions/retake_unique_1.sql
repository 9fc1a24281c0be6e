-- Takes a unique key again for a job that is redriven; false when another job has it, NULL when another transaction is
-- taking it.
-- Lock: as take_unique_1, for 50 ms at most: the final rows that the redrive has locked are not held up by a caller's
-- transaction. Index: those of take_unique_1. Differs: SQLite has one writer.
create function {schema}.retake_unique_1(
    p_key bytea, p_id bigint, p_run int, p_live boolean, p_won bigint[], p_now timestamptz) returns boolean
language plpgsql set lock_timeout = '50ms' as $$
begin
    return (take_unique_1(p_key, p_id, p_run, p_live, false, null, p_won, null, false, p_now)).holder is null;
exception when lock_not_available or deadlock_detected then
    return null;
end
$$;
