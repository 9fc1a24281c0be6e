-- Free the unique keys of jobs that are claimed, where they were held only until then. Lock: the write lock. Index: id.
delete from {prefix}_unique_key where id in (select value from json_each(:ids)) and live = 0
