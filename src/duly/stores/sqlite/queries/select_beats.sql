-- Every worker with its beat, for a reaper's watch. Lock: none. A row per live process.
select incarnation, beat, lease, :now - beat_at from {prefix}_worker order by incarnation
