-- Make a batch. Lock: the write lock. Index: primary key, parent. Differs: PostgreSQL does it in its function.
insert into {prefix}_batch (id, name, state, parent, created_at) values (:id, :name, 'open', :parent, :now)
