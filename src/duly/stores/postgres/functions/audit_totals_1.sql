-- Entries, those that seals count, and those that wait for one. Lock: none. Index: the tables whole. Differs: none.
create function {schema}.audit_totals_1() returns table (entries bigint, counted bigint, waiting bigint)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select (select count(*) from audit_entry), (select coalesce(sum(cardinality(s.ids)), 0) from audit_seal s),
           (select count(*) from audit_pending)
$$;
