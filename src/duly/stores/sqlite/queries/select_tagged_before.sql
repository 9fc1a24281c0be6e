-- Ids of jobs with a tag, the newest first. Lock: none. Index: primary key, in order.
select id from {prefix}_job_tag where tag = :value and id < :edge order by id desc limit :most
