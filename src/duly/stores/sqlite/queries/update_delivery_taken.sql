-- Try a delivery: nobody else does before a time. Lock: the write lock. Index: primary key.
update {prefix}_alert_delivery set tries = tries + 1, next_at = :next_at where change_id = :change and sink = :sink
