-- Give a job that was set aside another priority. Lock: the write lock. Index: primary key.
update {prefix}_blocked set priority = :priority where id = :id
