-- Free unique keys that their jobs, ended or claimed, have left behind. Lock: the write lock. Index: ids.
delete from {prefix}_unique_key
where id in (select value from json_each(:ids))
  and not exists (select 1 from {prefix}_ready as r where r.id = {prefix}_unique_key.id)
  and not exists (select 1 from {prefix}_scheduled as s where s.id = {prefix}_unique_key.id)
  and not exists (select 1 from {prefix}_blocked as b where b.id = {prefix}_unique_key.id)
  and not (live = 1 and exists (select 1 from {prefix}_claimed as c where c.id = {prefix}_unique_key.id))
