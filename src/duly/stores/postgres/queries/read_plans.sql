-- What tenants were sold. Lock: none. Index: tenant_pkey. Differs: none.
select name, weight, max_running, interval, burst from {schema}.tenant order by name
