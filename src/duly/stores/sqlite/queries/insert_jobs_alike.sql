-- Store jobs that differ only in id and arguments, under consecutive ids. args: a list of JSON texts. Lock: the write lock.
-- Index: primary key, correlation where there is one. Differs: only here, for a row of parameters costs more than a job.
insert into {prefix}_job (id, queue, task, args, priority, tenant, tags, correlation_id, attempts, timeout, expires_at, enqueued_at)
select :first + given.key, :queue, :task, cast(given.value as blob), :priority, :tenant, :tags, :correlation_id, :attempts,
       :timeout, :expires_at, :now
from json_each(:args) as given
