-- Some of the jobs that hold a limit. Lock: none, a snapshot. Index: hold by primary key, in order.
select id from {prefix}_hold where key = :key and id > 0 order by id limit :most
