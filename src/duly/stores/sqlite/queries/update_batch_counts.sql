-- Count members of a batch. Lock: the write lock. Index: primary key. Differs: PostgreSQL appends to batch_done.
update {prefix}_batch
   set total = total + :total, completed = completed + :completed, skipped = skipped + :skipped,
       cancelled = cancelled + :cancelled, shed = shed + :shed, dead = dead + :dead
 where id = :id
