-- The advisory key of the door and the number of the channel. Lock: none. Index: none. Differs: PostgreSQL only.
select {schema}.door_class_1(), '{schema}.worker'::regclass::oid::bigint
