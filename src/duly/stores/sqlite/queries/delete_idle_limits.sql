-- Forget limits of which nothing is to be remembered. Lock: the write lock. Index: primary key; blocked by gate.
delete from {prefix}_limit_state
where key in (select value from json_each(:keys))
  and tat <= :now and next_at is null
  and not exists (select 1 from {prefix}_hold as h where h.key = {prefix}_limit_state.key)
  and not exists (select 1 from {prefix}_blocked as b where b.gate = {prefix}_limit_state.key and b.gate <> 0)
