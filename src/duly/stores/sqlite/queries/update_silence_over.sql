-- End a silence. Lock: the write lock. Index: primary key.
update {prefix}_silence set until = :now where id = :id and until > :now returning rule, target
