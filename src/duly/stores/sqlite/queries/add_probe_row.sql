-- One bare row. Lock: the file. Index: its key. Differs: none.
INSERT INTO {prefix}_probe (payload) VALUES (:payload)
