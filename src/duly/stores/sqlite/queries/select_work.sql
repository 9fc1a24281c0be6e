-- Whether a claim would find anything. Lock: none. Index: ready by primary key, blocked by cause.
select exists (
    select 1 from json_each(:lanes) as lane cross join {prefix}_ready as r on r.queue = lane.value and r.tenant = 0
) or exists (
    select 1 from json_each(:fair) as lane cross join {prefix}_ready as r on r.queue = lane.value
) or exists (
    select 1 from json_each(:tasks) as known cross join {prefix}_blocked as b on b.cause = 1 and b.task = known.value
)
