-- The job that holds a unique key, whether it runs, and what a row for its end needs. No row: the key is free, though a
-- row of a job that has ended, expired or been claimed may still be there. Lock: the write lock, taken before.
-- Index: primary keys and ids.
select k.id, c.id is not null
from {prefix}_unique_key as k
left join {prefix}_ready as r on r.id = k.id
left join {prefix}_scheduled as s on s.id = k.id
left join {prefix}_blocked as b on b.id = k.id
left join {prefix}_claimed as c on c.id = k.id and k.live = 1
where k.key = :key
  and (
      c.id is not null
      or (
          coalesce(r.id, s.id, b.id) is not null
          and coalesce(r.expires_at, s.expires_at, b.expires_at, 9223372036854775807) > :now
      )
  )
