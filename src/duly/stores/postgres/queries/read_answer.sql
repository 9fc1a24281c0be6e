-- How a job ended that is no longer kept. Lock, index: answer_1. Differs: none.
select status, ended_at, result, reason from {schema}.answer_1(%(id)s::bigint, %(now)s::timestamptz)
