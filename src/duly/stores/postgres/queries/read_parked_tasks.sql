-- Names of tasks with jobs parked as unknown. Lock: none. Index: blocked_cause, job_pkey. Differs: none.
select * from {schema}.parked_tasks_1()
