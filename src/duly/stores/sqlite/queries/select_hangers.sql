-- Whether any wish, word of progress or hold is there at all. Lock: the write lock, taken before. Index: the first rows.
-- Differs: only here, so that most ends look for neither.
select exists (select 1 from {prefix}_wish), exists (select 1 from {prefix}_progress),
       exists (select 1 from {prefix}_hold)
