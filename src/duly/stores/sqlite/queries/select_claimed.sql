-- Everything an incarnation holds. Lock: none. Index: primary key, one range.
select id, run from {prefix}_claimed where incarnation = :incarnation order by id
