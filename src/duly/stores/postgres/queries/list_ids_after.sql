-- Ids of jobs above an edge, oldest first, by the one narrowest index (source). Lock: none. Index: the id index of the source.
-- Differs: one file per source in SQLite.
select x.id from (
    (select t.id from {schema}.job t where %(source)s::text = 'job' and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
    union all
    (select t.id from {schema}.job t where %(source)s::text = 'correlation'
       and t.correlation_id = %(value)s::text and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
    union all
    (select t.id from {schema}.job_tag t where %(source)s::text = 'tag' and t.tag = %(value)s::text and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
    union all
    (select t.id from {schema}.ready t where %(source)s::text = 'ready' and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
    union all
    (select t.id from {schema}.scheduled t where %(source)s::text = 'scheduled' and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
    union all
    (select t.id from {schema}.blocked t where %(source)s::text = 'blocked' and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
    union all
    (select t.id from {schema}.claimed t where %(source)s::text = 'running' and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
    union all
    (select t.id from {schema}.finished t where %(source)s::text = 'finished' and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
    union all
    (select t.id from {schema}.dead t where %(source)s::text = 'dead' and t.id > %(edge)s::bigint
      order by t.id limit %(most)s::int)
) x order by x.id
