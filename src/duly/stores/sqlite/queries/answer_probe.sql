-- A question that asks for nothing. Lock: none. Index: none. Differs: none.
SELECT 1
