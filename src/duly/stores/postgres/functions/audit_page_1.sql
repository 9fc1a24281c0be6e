-- Entries before one, the newest first. Lock: none. Index: audit_entry_pkey, backwards. Differs: none.
create function {schema}.audit_page_1(
    p_before bigint, p_actor text, p_verb text, p_target text, p_since timestamptz, p_until timestamptz, p_most int)
returns setof {schema}.audit_entry
language sql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
    select e.* from audit_entry e
     where e.id < coalesce(p_before, 9223372036854775807)
       and (p_actor is null or e.actor = p_actor)
       and (p_verb is null or e.verb = p_verb)
       and (p_target is null or e.target = p_target)
       and (p_since is null or e.at >= p_since)
       and (p_until is null or e.at < p_until)
     order by e.id desc limit p_most
$$;
