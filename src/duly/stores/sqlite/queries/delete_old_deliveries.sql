-- Forget deliveries of changes of long ago. Lock: the write lock. Index: primary keys.
delete from {prefix}_alert_delivery where change_id in (select id from {prefix}_alert_change where at < :before)
