-- One bare row and its commit. Lock: none. Index: its key. Differs: none.
insert into {schema}.probe (payload) values (%(payload)s)
