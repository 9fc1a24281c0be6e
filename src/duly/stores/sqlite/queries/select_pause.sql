-- Whether a pause holds. Lock: the write lock, taken before. Index: primary key.
-- Differs: SQLite 3.40 answers wrongly to expressions in `returning` of a delete without rowid.
select 1 from {prefix}_pause where target = :target and (until is null or until > :now)
