-- Overrides that have ended before; who made and lifted them stays among the acts. Lock: the write lock. Index: none, they are
-- few.
delete from {prefix}_override where coalesce(lifted_at, until) < :before
