-- When a release of an App was first seen, and when the latest was. Lock: none. Index: primary key, one range.
select max(first_seen) filter (where release = :release), max(first_seen)
from {prefix}_release
where origin = :origin
