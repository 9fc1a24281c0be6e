-- What is known of some limits while jobs take them: how each stands, with its place in `keys`; what was there of reservations;
-- and what was taken and reserved so far. gate: what refused the last taker.
-- Lock: none. Index: none. Differs: SQLite's is a class.
create type {schema}.taking_1 as (
    keys bigint[], free int[], counted boolean[], tat timestamptz[], pace interval[], burst int[], closed timestamptz[],
    kept_keys bigint[], kept_ids bigint[], taken_keys bigint[], taken_ids bigint[], saved_keys bigint[], saved_ids bigint[],
    gate bigint
);
