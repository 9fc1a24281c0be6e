-- Those of the references that no stored job and no schedule uses. Lock: none. Index: blob_pkey, schedule whole.
-- Differs: none.
create function {schema}.unused_blobs_1(p_refs text[]) returns setof text
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    return query
    select u.ref from unnest(p_refs) with ordinality as u (ref, place)
     where not exists (select 1 from blob b where b.ref = u.ref)
       and not exists (select 1 from schedule s where s.definition #> '{job,refs}' ? u.ref)
     order by u.place;
end
$$;
