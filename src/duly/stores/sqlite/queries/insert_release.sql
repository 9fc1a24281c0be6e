-- Note when a release of an App was first seen. Lock: the write lock. Index: primary key.
insert into {prefix}_release (origin, release, first_seen) values (:origin, :release, :first_seen)
