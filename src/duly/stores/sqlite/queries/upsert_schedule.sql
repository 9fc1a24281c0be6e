-- Store a schedule, or give it another definition and due time; what it has done and its pause stay.
-- Lock: the write lock. Index: primary key.
insert into {prefix}_schedule (name, origin, definition, next_at, created_at)
values (:name, :origin, :definition, :next_at, :now)
on conflict (name) do update
set origin = excluded.origin, definition = excluded.definition, next_at = excluded.next_at,
    failure = null, failed_at = null, failures = 0
