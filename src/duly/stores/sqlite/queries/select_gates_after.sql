-- What blocked jobs wait behind, after a place in the order of gates, with the cause and the name of each and whether it
-- is an ordering key without an owner. Lock: none. Index: gate, one probe each; limits and keys by primary key.
with recursive found (gate, count) as (
    select (select b.gate from {prefix}_blocked as b where b.gate > :after and b.gate <> 0 order by b.gate limit 1), 1
    union all
    select (select b.gate from {prefix}_blocked as b where b.gate > found.gate and b.gate <> 0 order by b.gate limit 1),
           found.count + 1
    from found
    where found.gate is not null and found.count < :most
)
select found.gate,
       (select b.cause from {prefix}_blocked as b where b.gate = found.gate and b.gate <> 0 limit 1),
       s.name, h.id is null and coalesce(h.paused, 0) = 0
from found
left join {prefix}_limit_state as s on s.key = found.gate
left join {prefix}_key_head as h on h.key = found.gate
where found.gate is not null
