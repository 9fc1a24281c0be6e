-- The keys of a kind, the newest first. Lock: none. Index: primary key.
select kind, id, value, created_at, retired_at from {prefix}_secret where kind = :kind order by id desc
