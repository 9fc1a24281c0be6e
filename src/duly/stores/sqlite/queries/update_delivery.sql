-- What came of a try. Lock: the write lock. Index: primary key.
update {prefix}_alert_delivery set state = :state, next_at = :next_at, last_error = coalesce(:error, last_error)
where change_id = :change and sink = :sink and state = 'due'
