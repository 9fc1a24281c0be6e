-- Payloads of a key that are not encrypted anew. Lock, index: sealed_elsewhere_1. Differs: none.
select place, number from {schema}.sealed_elsewhere_1(%(key)s::text)
