-- Forget tallies of long ago. Lock: the write lock. Index: primary key.
delete from {prefix}_tally where span = :span and at < :before
