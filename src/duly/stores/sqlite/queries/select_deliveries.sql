-- What became of one change, by sink. Lock: none. Index: primary keys.
select c.id, c.rule, c.target, c.state, c.at, c.value, d.sink, d.state, d.tries, d.next_at, d.last_error
from {prefix}_alert_delivery as d
cross join {prefix}_alert_change as c on c.id = d.change_id
where d.change_id = :change
order by d.sink
