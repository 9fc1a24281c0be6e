-- Where a batch stands after a change. Lock: the write lock. Index: primary key, finished. Differs: a function there.
update {prefix}_batch
   set state = :state, told = :told, mourned = :mourned, closed_at = :closed_at, finished_at = :finished_at,
       reason = :reason
 where id = :id
