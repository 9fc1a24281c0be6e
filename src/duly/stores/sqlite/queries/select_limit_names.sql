-- Limits with a policy or in use, by name. Lock: none. A row per policy and per limit in use.
select name from {prefix}_limit_policy
union
select name from {prefix}_limit_state where name not like 'block:%'
order by 1
limit :most
