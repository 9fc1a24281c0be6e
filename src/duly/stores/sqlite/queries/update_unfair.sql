-- Bring jobs of a queue together that stand in the lanes of tenants. Lock: the write lock. Index: primary key.
update {prefix}_ready set tenant = 0
where id in (select r.id from {prefix}_ready as r where r.queue = :queue and r.tenant <> 0 limit :most)
