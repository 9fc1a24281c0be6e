-- Which version of the bounds holds. Lock: none. One row.
select version from {prefix}_control where only = 1
