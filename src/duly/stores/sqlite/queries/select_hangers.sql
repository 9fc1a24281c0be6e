-- Whether any wish or any word of progress is there at all. Lock: the write lock, taken before. Index: the first rows.
-- Differs: only here, so that most ends look for neither.
select exists (select 1 from {prefix}_wish), exists (select 1 from {prefix}_progress)
