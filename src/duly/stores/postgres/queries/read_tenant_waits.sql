-- What tenants have ready in fair queues. Lock, index: tenant_waits_1. Differs: none.
select queue, tenant, ready, oldest from {schema}.tenant_waits_1(%(tenant)s::text, %(most)s::int, %(now)s::timestamptz)
