-- A round trip that asks for nothing. Lock: none. Index: none. Differs: none.
select 1
