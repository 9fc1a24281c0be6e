-- Find a job by its tag. Lock: the write lock. Index: primary key.
insert into {prefix}_job_tag (tag, id) values (:tag, :id) on conflict do nothing
