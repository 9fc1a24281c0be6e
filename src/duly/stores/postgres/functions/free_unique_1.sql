-- Gives back the unique keys of jobs: those of scope queued, or with p_any those of any scope.
-- Lock: the keys' rows FOR UPDATE SKIP LOCKED: claims and ends wait for no caller's transaction. What is left counts as free
-- and is removed by the sweep. Index: unique_key_id. Differs: SQLite has one writer.
create function {schema}.free_unique_1(p_ids bigint[], p_any boolean) returns void
language plpgsql as $$
begin
    delete from unique_key where ctid = any(array(
        select x.tid from unnest(p_ids) as u (id) cross join lateral (
            select k.ctid as tid from unique_key k
             where k.id = u.id and (p_any or not k.live) for update skip locked) x));
end
$$;
