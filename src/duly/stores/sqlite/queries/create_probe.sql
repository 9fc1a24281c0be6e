-- The table of the bench's bare commits. Lock: the file, briefly. Index: its key. Differs: none.
CREATE TABLE {prefix}_probe (id INTEGER PRIMARY KEY, payload BLOB NOT NULL) STRICT
