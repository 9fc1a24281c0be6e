-- Keep a result that is too large for its finished row. Lock: the write lock. Index: primary key.
insert into {prefix}_result (id, result) values (:id, :result)
