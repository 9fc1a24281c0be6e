-- Every worker's beat. Lock, index: beats_1. Differs: none.
select incarnation, beat, lease, age from {schema}.beats_1(%(now)s::timestamptz)
