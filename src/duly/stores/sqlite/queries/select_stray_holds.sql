-- Holds that nobody has any more: past their time, of attempts that have ended, reserved by jobs that do not wait.
-- Lock: none. Index: holds whole, they are of what runs now; claimed and waiting tables by id.
select h.key, h.id
from {prefix}_hold as h
where case when h.until is not null then h.until <= :now
           when h.incarnation <> 0 then not exists (
               select 1 from {prefix}_claimed as c where c.incarnation = h.incarnation and c.id = h.id
           )
           else h.id > 0 and not exists (select 1 from {prefix}_ready as r where r.id = h.id)
               and not exists (select 1 from {prefix}_blocked as b where b.id = h.id) end
limit :most
