-- Keep what was counted of one queue. Lock: the write lock. Index: primary key.
insert into {prefix}_depth (state, queue, count, extreme, at) values (:state, :queue, :count, :extreme, :at)
