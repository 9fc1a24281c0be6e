-- How many payloads of one key stand where they are not encrypted anew. Lock: none. Index: none, it is asked by hand.
select 'follow-ups', count(*) from {prefix}_follow where instr(spec, :key) > 0
union all
select 'schedules', count(*) from {prefix}_schedule where instr(definition, :key) > 0
union all
select 'kept answers', count(*) from {prefix}_idempotency where instr(result, cast(:key as blob)) > 0
