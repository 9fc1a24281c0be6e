-- Whether an answer has expired. Lock: none. Index: expires_at.
select exists (select 1 from {prefix}_answer where expires_at <= :now)
