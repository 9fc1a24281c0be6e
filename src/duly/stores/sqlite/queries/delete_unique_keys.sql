-- Free the unique keys of jobs that have ended, as far as they still are theirs. Lock: the write lock. Index: id.
delete from {prefix}_unique_key where id in (select value from json_each(:ids))
