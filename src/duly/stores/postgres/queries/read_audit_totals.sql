-- How many entries the audit has. Lock, index: audit_totals_1. Differs: none.
select entries, counted, waiting from {schema}.audit_totals_1()
