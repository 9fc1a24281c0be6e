-- Seals before one, the newest first, or after one. Lock: none. Index: audit_seal_pkey. Differs: none.
create function {schema}.audit_seals_1(p_before bigint, p_after bigint, p_most int)
returns table (id bigint, first bigint, last bigint, count int, digest bytea, previous bytea, at timestamptz)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select s.id, s.ids[1], s.ids[cardinality(s.ids)], cardinality(s.ids), s.digest, s.previous, s.at
      from audit_seal s
     where s.id > coalesce(p_after, 0) and s.id < coalesce(p_before, 9223372036854775807)
     order by case when p_after is null then -s.id else s.id end limit p_most
$$;
