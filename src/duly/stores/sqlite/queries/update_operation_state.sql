-- Run, pause or cancel a bulk act that has not ended. Lock: the write lock. Index: primary key.
update {prefix}_operation
set state = :state, ended_at = case when :state = 'cancelled' then :now end
where id = :id and state in ('running', 'paused')
