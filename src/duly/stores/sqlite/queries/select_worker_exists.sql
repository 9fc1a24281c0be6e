-- Whether an incarnation lives. Lock: none. Index: primary key.
select 1 from {prefix}_worker where incarnation = :incarnation
