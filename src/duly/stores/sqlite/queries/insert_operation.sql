-- Store a bulk act. Lock: the write lock. Index: primary key.
insert into {prefix}_operation (verb, filter, state, rate, priority, total, by, reason, created_at, upto)
values (:verb, :filter, 'running', :rate, :priority, :total, :by, :reason, :now, :upto)
returning id
