-- The entries under a seal. Lock: none. Index: audit_seal_pkey, audit_entry_pkey. Differs: none.
create function {schema}.audit_entries_1(p_seal bigint) returns setof {schema}.audit_entry
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select e.* from audit_entry e
     where e.id = any((select s.ids from audit_seal s where s.id = p_seal)::bigint[]) order by e.id
$$;
