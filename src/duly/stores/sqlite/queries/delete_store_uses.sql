-- Samples that nobody asks for any more. Lock: the write lock, taken before. Index: store_use by primary key, one range.
delete from {prefix}_store_use
where at < :before
