-- Put a ready job into the lane of its name, at its place there. Lock: the write lock. Index: id.
update {prefix}_ready set queue = :queue, task = :task where id = :id
