-- Owe a change to a sink. Lock: the write lock. Index: primary key.
insert into {prefix}_alert_delivery (change_id, sink, state, tries, next_at) values (:change, :sink, 'due', 0, :now)
