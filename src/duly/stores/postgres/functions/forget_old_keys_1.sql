-- Deletes idempotency records, keys of `once` and versions past their time, at most p_most of each; answers whether
-- more may be left.
-- Lock: the rows FOR UPDATE SKIP LOCKED. Index: idempotency_until, once_until, newest_until. Differs: none.
create function {schema}.forget_old_keys_1(p_most int, p_now timestamptz) returns boolean
language plpgsql as $$
declare
    v_gone int;
    v_most_gone int;
begin
    delete from idempotency where ctid = any(array(
        select i.ctid from idempotency i where i.until <= p_now order by i.until limit p_most for update skip locked));
    get diagnostics v_most_gone = row_count;
    delete from once where ctid = any(array(
        select o.ctid from once o where o.until <= p_now order by o.until limit p_most for update skip locked));
    get diagnostics v_gone = row_count;
    v_most_gone := greatest(v_most_gone, v_gone);
    delete from newest where ctid = any(array(
        select n.ctid from newest n where n.until <= p_now order by n.until limit p_most for update skip locked));
    get diagnostics v_gone = row_count;
    return greatest(v_most_gone, v_gone) >= p_most;
end
$$;
