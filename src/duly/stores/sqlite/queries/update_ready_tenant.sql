-- Move a ready job from the lane of no tenant into its tenant's, at its old position. Lock: the write lock. Index: id.
update {prefix}_ready set tenant = :tenant where id = :id and tenant = 0
