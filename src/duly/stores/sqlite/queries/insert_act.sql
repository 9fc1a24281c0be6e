-- Note who did what by hand. Lock: the write lock. Index: primary key.
insert into {prefix}_act (at, verb, by, reason, jobs) values (:at, :verb, :by, :reason, :jobs)
