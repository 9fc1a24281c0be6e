-- Refuses to go on in a transaction that keeps its first snapshot: what follows locks first and reads later.
-- Lock: none. Index: none. Differs: SQLite has one isolation level.
create function {schema}.require_read_committed_1() returns void
language plpgsql as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'duly needs a READ COMMITTED transaction here' using errcode = 'DY001';
    end if;
end
$$;
