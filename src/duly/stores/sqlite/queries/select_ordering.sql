-- What the jobs behind a dead head do in a declared queue. Lock: none. Index: primary key.
select ordering from {prefix}_queue where name = :queue
