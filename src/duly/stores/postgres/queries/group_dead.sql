-- Dead letters by fingerprint, queue and task, the largest group first. Lock: none. Index: dead whole, job_pkey.
-- Differs: none.
select coalesce(d.fingerprint, ''), d.queue, d.task, count(*), min(d.died_at), max(d.died_at),
       (array_agg(coalesce(d.error_type || ': ' || d.error_message, d.error_type, d.reason, '')
                  order by d.died_at desc, d.id desc))[1], count(d.successor)
  from {schema}.dead d join {schema}.job j on j.id = d.id
 where (%(queue)s::text is null or d.queue = %(queue)s::text)
   and (%(task)s::text is null or d.task = %(task)s::text)
   and (%(tenant)s::text is null or d.tenant = %(tenant)s::text)
   and (%(correlation)s::text is null or coalesce(j.correlation_id, j.id::text) = %(correlation)s::text)
   and (%(fingerprint)s::text is null or starts_with(d.fingerprint, %(fingerprint)s::text))
   and (%(tag)s::text is null or %(tag)s::text = any(j.tags))
   and (%(since)s::timestamptz is null or j.enqueued_at >= %(since)s::timestamptz)
   and (%(until)s::timestamptz is null or j.enqueued_at < %(until)s::timestamptz)
 group by 1, 2, 3 order by 4 desc, 6 desc
