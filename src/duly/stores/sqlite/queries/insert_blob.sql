-- Note that a job uses a blob. Lock: the write lock. Index: primary key, reference.
insert into {prefix}_blob (id, ref) values (:id, :ref) on conflict do nothing
