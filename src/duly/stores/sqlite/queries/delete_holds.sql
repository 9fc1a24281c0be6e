-- Give back the limits that these attempts hold. Lock: the write lock. Index: incarnation, id.
delete from {prefix}_hold where incarnation = :incarnation and id in (select value from json_each(:ids))
