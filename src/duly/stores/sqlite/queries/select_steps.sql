-- Finished steps and cursors of one job. Lock: none. Index: primary key, one range.
select name, value, position from {prefix}_step where id = :id order by name
