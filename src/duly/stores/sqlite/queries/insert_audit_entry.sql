-- Note who did what. Lock: the write lock. Index: primary key.
insert into {prefix}_audit_entry (at, actor, verb, target, reason, detail)
values (:at, :actor, :verb, :target, :reason, :detail)
returning id
