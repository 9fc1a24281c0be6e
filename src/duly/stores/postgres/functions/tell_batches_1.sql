-- Leaves word that batches have to be looked at, by whoever ends jobs and does not look itself: the next exchange that has room
-- tells its worker (kind `batch`), once the caller's transaction has committed. Should nobody hear it, the sweep looks, too.
-- Lock: none that anybody waits for. Index: none. Differs: SQLite follows in the transaction of the end.
create function {schema}.tell_batches_1() returns void
language plpgsql as $$
begin
    insert into released (due, kind, key) values ('-infinity', 3, 0);
    perform ring_1();
end
$$;
