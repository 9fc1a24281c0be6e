-- Note that a queue has become late, or is in time again, unless another worker was faster. Lock: the write lock.
-- Index: primary key. Differs: crossings_1 in PostgreSQL.
update {prefix}_queue set late_since = :since where name = :name and (late_since is null) = (:since is not null)
