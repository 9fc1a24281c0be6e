-- Committed entries that no seal covers, the oldest first, with the last seal: (its id, its digest), 0 and NULL without one.
-- Lock: none. Index: audit_pending_pkey, audit_entry_pkey, audit_seal_pkey. Differs: PostgreSQL only.
create function {schema}.unsealed_1(p_most int)
returns table (seal bigint, sealed bytea, id bigint, at timestamptz, actor text, verb text, target text, reason text, detail text)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select coalesce(s.id, 0), s.digest, e.id, e.at, e.actor, e.verb, e.target, e.reason, e.detail
      from (select p.id from audit_pending p order by p.id limit p_most) p
      join audit_entry e on e.id = p.id
      left join lateral (select s.id, s.digest from audit_seal s order by s.id desc limit 1) s on true
     order by e.id
$$;
