-- Move a ready job to the tail of another lane; it has waited as long as before. Lock: the write lock. Index: id.
-- Differs: PostgreSQL deletes and inserts.
update {prefix}_ready set priority = :priority, pos = :pos where id = :id
