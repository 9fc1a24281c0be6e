-- Up to when all is counted. Lock, index: tallied_1. Differs: none.
select {schema}.tallied_1()
