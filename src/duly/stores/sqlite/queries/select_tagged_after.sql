-- Ids of jobs with a tag, the oldest first. Lock: none. Index: primary key, in order.
select id from {prefix}_job_tag where tag = :value and id > :edge order by id asc limit :most
