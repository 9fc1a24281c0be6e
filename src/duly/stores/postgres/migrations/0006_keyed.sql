-- One job with a key at a time, as web requests enqueue them, without the way of those that come by the thousand.
-- Lock: none but that of a new function. Differs: PostgreSQL only.

-- include: functions/enqueue_keyed_1.sql
