-- The highest number given out. Lock: none. Index: primary key. Differs: PostgreSQL reads its sequence.
select value from {prefix}_seq where only = 1
