-- Record one applied migration. Lock: the write lock.
insert into {prefix}_schema_version (version, name, checksum, applied_at)
values (:version, :name, :checksum, :applied_at)
