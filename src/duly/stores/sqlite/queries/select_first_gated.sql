-- The first job of an ordering key that waits behind it. Lock: the write lock, taken before. Index: gate, one range.
select min(id) from {prefix}_blocked where gate = :gate and gate <> 0 and cause = 3
