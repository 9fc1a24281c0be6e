-- Wakes idle workers at the commit, only when one of them stands at the door (holds the exclusive lock of its listener).
-- Lock: shared advisory lock until the transaction ends, never waited for. Index: none. Differs: SQLite has no bell.
create function {schema}.ring_1() returns void
language plpgsql as $$
begin
    perform pg_notify('duly_' || 'worker'::regclass::oid, '')
      where not pg_try_advisory_xact_lock_shared(door_class_1(), 1);
end
$$;
