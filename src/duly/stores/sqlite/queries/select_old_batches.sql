-- Batches that have ended before, and those made before of which nothing is there that could still end. Lock: none.
-- Index: finished, one range; unfinished, their members and the batches inside by batch.
select id from (
    select b.id from {prefix}_batch as b where b.finished_at < :before order by b.finished_at limit :most
)
union all
select id from (
    select b.id
    from {prefix}_batch as b
    where b.finished_at is null and b.created_at < :before
      and not exists (select 1 from {prefix}_job as j where j.batch = b.id)
      and not exists (select 1 from {prefix}_batch as c where c.parent = b.id)
    limit :most
)
