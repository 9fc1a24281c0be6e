-- A sweep tells what is due beside it, so that an idle worker does not ask for each of those every second.
-- Lock: none but those of new functions. Differs: PostgreSQL only.

-- include: functions/due_beside_1.sql
-- include: functions/sweep_4.sql
