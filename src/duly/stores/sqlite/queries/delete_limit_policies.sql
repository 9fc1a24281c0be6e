-- Forget the bounds of an App that it declares no more. Lock: the write lock. A row per name.
delete from {prefix}_limit_policy
where origin = :origin and name not in (select value from json_each(:names))
