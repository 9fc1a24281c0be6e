-- Seals before one, the newest first, or after one. Lock: none. Index: audit_seal_pkey. Differs: none.
create function {schema}.audit_seals_1(p_before bigint, p_after bigint, p_most int)
returns table (id bigint, first bigint, last bigint, count int, digest bytea, previous bytea, at timestamptz)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
#variable_conflict use_column
begin
    if p_after is null then
        return query
        select s.id, s.ids[1], s.ids[cardinality(s.ids)], cardinality(s.ids), s.digest, s.previous, s.at
          from audit_seal s
         where s.id < coalesce(p_before, 9223372036854775807) order by s.id desc limit p_most;
    else
        return query
        select s.id, s.ids[1], s.ids[cardinality(s.ids)], cardinality(s.ids), s.digest, s.previous, s.at
          from audit_seal s
         where s.id > p_after order by s.id limit p_most;
    end if;
end
$$;
