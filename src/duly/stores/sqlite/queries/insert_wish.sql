-- Wish that a running job be cancelled; the first wish stands. Lock: the write lock. Index: primary key.
insert into {prefix}_wish (id, verb, by, reason, at) values (:id, 'cancel', :by, :reason, :at)
on conflict (id) do nothing
