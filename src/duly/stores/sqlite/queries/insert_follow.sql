-- Keep a follow-up with its parent. Lock: the write lock. Index: primary key.
insert into {prefix}_follow (id, kind, position, spec) values (:id, :kind, :position, :spec)
