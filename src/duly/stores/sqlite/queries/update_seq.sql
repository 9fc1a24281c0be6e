-- Take numbers from the one sequence of ids and positions. Lock: the write lock. Index: primary key.
-- Differs: PostgreSQL has a sequence.
update {prefix}_seq set value = value + :count where only = 1 returning value
