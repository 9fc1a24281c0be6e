-- Forget jobs' tags; before their rows, which name the tags. Lock: the write lock. Index: primary keys.
delete from {prefix}_job_tag
where (tag, id) in (
    select tag.value, j.id
    from json_each(:ids) as asked
    cross join {prefix}_job as j on j.id = asked.value and j.tags is not null
    cross join json_each(j.tags) as tag
)
