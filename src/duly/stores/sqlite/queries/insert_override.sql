-- Lay an override over what is declared. Lock: the write lock. Index: primary key, live.
insert into {prefix}_override (target, kind, value, by, reason, at, until)
values (:target, :kind, :value, :by, :reason, :at, :until)
returning id
