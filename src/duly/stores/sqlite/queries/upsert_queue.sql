-- Record a declared queue. Lock: the write lock. Index: primary key.
insert into {prefix}_queue (
    name, key, owner, keep, keep_dead, fair, ordering, serialise, wait_target, max_depth, max_age, when_full, importance,
    reserve
) values (
    :name, :key, :owner, :keep, :keep_dead, :fair, :ordering, :serialise, :wait_target, :max_depth, :max_age, :when_full,
    :importance, :reserve
)
on conflict (name) do update
set key = excluded.key, owner = excluded.owner, keep = excluded.keep, keep_dead = excluded.keep_dead,
    fair = excluded.fair, ordering = excluded.ordering, serialise = excluded.serialise,
    wait_target = excluded.wait_target, max_depth = excluded.max_depth, max_age = excluded.max_age,
    when_full = excluded.when_full, importance = excluded.importance,
    reserve = excluded.reserve
