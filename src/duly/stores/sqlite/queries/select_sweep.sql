-- When a kind of upkeep was last done, and a number of its own. Lock: none. Index: primary key.
select last_at, position from {prefix}_sweep where name = :name
