-- What a tenant was sold. Lock: none. Index: name.
select weight, max_running, interval, burst from {prefix}_tenant where name = :name
