-- What the file took lately, oldest first. Lock: none. Index: store_use by primary key, one range.
select at, used, free_disk
from {prefix}_store_use
where at >= :since
order by at
