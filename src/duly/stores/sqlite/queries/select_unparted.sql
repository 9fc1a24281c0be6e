-- Ready jobs of tenants in the lane of no tenant: (id, tenant), of the first so many there. Lock: none. Index: primary key.
select r.id, j.tenant
from (
    select id from {prefix}_ready where queue = :queue and tenant = 0 order by priority, pos limit :most
) as r
cross join {prefix}_job as j on j.id = r.id
where j.tenant <> ''
