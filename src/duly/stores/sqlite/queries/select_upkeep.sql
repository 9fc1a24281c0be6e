-- Which parts of a sweep have something to do. Lock: none. Index: expires, cause; claimed whole.
-- Differs: only here, so that a sweep without work takes no write lock.
select exists (
        select 1 from {prefix}_claimed as c
        where not exists (select 1 from {prefix}_worker as live where live.incarnation = c.incarnation)
    ),
    exists (select 1 from {prefix}_claimed where deadline < :before),
    exists (select 1 from {prefix}_ready where expires_at is not null and expires_at <= :now),
    exists (select 1 from {prefix}_scheduled where expires_at is not null and expires_at <= :now),
    exists (select 1 from {prefix}_blocked where expires_at is not null and expires_at <= :now),
    exists (select 1 from {prefix}_pause where until <= :now)
