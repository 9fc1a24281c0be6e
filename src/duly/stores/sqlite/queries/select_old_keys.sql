-- Whether records of keys are there whose time is over. Lock: none. Index: until, one probe each.
-- Differs: only here, so that retention without work takes no write lock.
select exists (select 1 from {prefix}_idempotency where until <= :now)
    or exists (select 1 from {prefix}_newest where until <= :now)
    or exists (select 1 from {prefix}_once where until <= :now)
