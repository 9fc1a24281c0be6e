-- Keep a new key. Lock: the write lock. Index: primary key.
insert into {prefix}_secret (kind, id, value, created_at) values (:kind, :id, :value, :now)
