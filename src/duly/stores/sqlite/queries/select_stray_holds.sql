-- Holds that nobody has any more: past their time, of attempts that have ended, reserved by jobs that do not
-- wait for limits: one that was let go and is not claimed may stand in a queue that nobody serves.
-- Lock: none. Index: holds whole, they are of what runs now; claimed and blocked by id.
select h.key, h.id
from {prefix}_hold as h
where case when h.until is not null then h.until <= :now
           when h.incarnation <> 0 then not exists (
               select 1 from {prefix}_claimed as c where c.incarnation = h.incarnation and c.id = h.id
           )
           else h.id > 0
               and not exists (select 1 from {prefix}_blocked as b where b.id = h.id and b.cause > 2) end
limit :most
