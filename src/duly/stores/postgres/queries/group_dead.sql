-- Dead letters by fingerprint, queue and task, the largest group first, each with the error of its latest. Lock: none.
-- Index: dead_by_error, read alone; dead_order, one probe a group; job_pkey where a tag is asked for. Differs: SQLite reads
-- the latest by a statement of its own.
select coalesce(g.fingerprint, ''), g.queue, g.task, g.letters, g.first, g.last, coalesce(l.error, ''), g.edited
  from (select d.fingerprint, d.queue, d.task, count(*) as letters, min(d.died_at) as first, max(d.died_at) as last,
               count(d.successor) as edited
          from {schema}.dead d
         where (%(queue)s::text is null or d.queue = %(queue)s::text)
           and (%(task)s::text is null or d.task = %(task)s::text)
           and (%(tenant)s::text is null or d.tenant = %(tenant)s::text)
           and (%(correlation)s::text is null or coalesce(d.correlation_id, d.id::text) = %(correlation)s::text)
           and (%(fingerprint)s::text is null or starts_with(d.fingerprint, %(fingerprint)s::text))
           and (%(tag)s::text is null
                or exists (select from {schema}.job j where j.id = d.id and %(tag)s::text = any(j.tags)))
           and (%(since)s::timestamptz is null or d.enqueued_at >= %(since)s::timestamptz)
           and (%(until)s::timestamptz is null or d.enqueued_at < %(until)s::timestamptz)
         group by 1, 2, 3) g
  left join lateral (
       select coalesce(d.error_type || ': ' || d.error_message, d.error_type, d.reason) as error
         from {schema}.dead d
        where d.queue_key = {schema}.key_of_1(g.queue) and d.died_at = g.last
          and d.fingerprint is not distinct from g.fingerprint and d.queue = g.queue and d.task = g.task
        order by d.id desc limit 1) l on true
 order by g.letters desc, g.last desc
