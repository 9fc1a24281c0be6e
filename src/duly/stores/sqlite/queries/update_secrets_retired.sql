-- Let the keys of a kind sign nothing new. Lock: the write lock. Index: primary key.
update {prefix}_secret set retired_at = :now where kind = :kind and retired_at is null
