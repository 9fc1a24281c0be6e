-- Those of some tokens that nobody used lately. Lock: none. Index: primary key.
select t.id from json_each(:ids) as e join {prefix}_token as t on t.id = e.value
where t.last_used_at is null or t.last_used_at <= :before
