-- Jobs with keys among others, as services enqueue them by the dozen, without the way of jobs that carry follow-ups.
-- Lock: none but that of a new function. Differs: PostgreSQL only.

-- include: functions/enqueue_keyed_many_1.sql
