-- Changes that sinks are owed, the oldest first. Lock: none. Index: alert_delivery_due, change by primary key.
select c.id, c.rule, c.target, c.state, c.at, c.value, d.sink, d.state, d.tries, d.next_at, d.last_error
from {prefix}_alert_delivery as d
cross join {prefix}_alert_change as c on c.id = d.change_id
where d.state = 'due' and d.next_at <= :now and d.sink in (select value from json_each(:sinks))
order by d.change_id, d.sink
limit :most
