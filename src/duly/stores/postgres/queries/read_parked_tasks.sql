-- Names of tasks with jobs parked as unknown. Lock: none. Index: blocked_cause, job_pkey. Differs: none.
select told.task from {schema}.parked_tasks_1() as told (task)
