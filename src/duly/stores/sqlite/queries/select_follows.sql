-- The follow-ups of one job for one way to end, in order. Lock: the write lock, taken before. Index: primary key, one range.
select spec from {prefix}_follow where id = :id and kind = :kind order by position
