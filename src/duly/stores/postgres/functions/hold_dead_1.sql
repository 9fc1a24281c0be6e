-- Whether a dead letter is there that no edited job runs in the place of; nobody moves it before the transaction ends.
-- Lock: its row. Index: dead_pkey. Differs: SQLite has one writer.
create function {schema}.hold_dead_1(p_id bigint) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    perform require_read_committed_1();
    perform 1 from dead d where d.id = p_id and d.successor is null for update;
    return found;
end
$$;
