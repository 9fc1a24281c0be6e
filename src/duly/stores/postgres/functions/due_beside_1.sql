-- What whoever has swept finds to do beside it, in transactions of its own: expired answers, audited jobs whose ends may be
-- written, entries without a seal, minutes to count. Says at most what those look for themselves.
-- Lock: none. Index: answer_expires, audited_pkey, audit_pending_pkey, sweep_pkey. Differs: SQLite just tries each.
create function {schema}.due_beside_1(p_lag float8, p_now timestamptz) returns text[]
language sql stable as $$
    select array_remove(array[
        case when exists (select 1 from {schema}.answer a where a.expires_at <= p_now) then 'answers' end,
        case when exists (select 1 from {schema}.audited) then 'audited' end,
        case when exists (select 1 from {schema}.audit_pending) then 'unsealed' end,
        case when (select s.last_at from {schema}.sweep s where s.name = 'tally')
                  >= date_trunc('minute', p_now - p_lag * interval '1 second', 'UTC') then null else 'tally' end
    ], null)
$$;
