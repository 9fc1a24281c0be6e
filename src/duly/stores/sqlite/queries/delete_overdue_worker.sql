-- End a lease whose beat still is as watched. Lock: the write lock. Index: primary key.
-- Differs: PostgreSQL takes many at once and skips locked rows.
delete from {prefix}_worker where incarnation = :incarnation and beat = :beat
