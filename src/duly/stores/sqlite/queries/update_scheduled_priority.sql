-- Give a scheduled job another priority. Lock: the write lock. Index: primary key.
update {prefix}_scheduled set priority = :priority where id = :id
