-- Give back a permit. Lock: the write lock. Index: primary key.
delete from {prefix}_hold
where key in (select value from json_each(:keys)) and id = :id and incarnation = :incarnation
