-- Seals entries behind the seal that their digest was made of; no row when another one came between.
-- Lock: the new seal's id: whoever comes second waits for it and finds it taken. Index: audit_seal_pkey, audit_pending_pkey.
-- Differs: SQLite has one writer.
create function {schema}.seal_audit_1(
    p_after bigint, p_ids bigint[], p_digest bytea, p_previous bytea, p_now timestamptz) returns setof timestamptz
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    perform require_read_committed_1();
    insert into audit_seal (id, ids, digest, previous, at) values (p_after + 1, p_ids, p_digest, p_previous, v_now)
        on conflict do nothing;
    if found then
        delete from audit_pending p where p.id = any(p_ids);
        return next v_now;
    end if;
end
$$;
