-- Whether an incarnation lives, and the tasks it knows. Lock: none. Index: primary key.
select tasks, draining from {prefix}_worker where incarnation = :incarnation
