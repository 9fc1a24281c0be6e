-- Give a job that was set aside the keys of its names. Lock: the write lock. Index: primary key.
update {prefix}_blocked set queue = :queue, task = :task where id = :id
