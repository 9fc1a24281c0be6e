-- Deletes idempotency records, keys of `once` and versions past their time, at most p_most of each.
-- Lock: the rows FOR UPDATE SKIP LOCKED. Index: idempotency_until, once_until, newest_until. Differs: none.
create function {schema}.forget_old_keys_1(p_most int, p_now timestamptz) returns void
language plpgsql as $$
begin
    delete from idempotency where ctid = any(array(
        select i.ctid from idempotency i where i.until <= p_now order by i.until limit p_most for update skip locked));
    delete from once where ctid = any(array(
        select o.ctid from once o where o.until <= p_now order by o.until limit p_most for update skip locked));
    delete from newest where ctid = any(array(
        select n.ctid from newest n where n.until <= p_now order by n.until limit p_most for update skip locked));
end
$$;
