-- One row of an exchange's answer. kind: lost (id, run: an end whose token is not live) · claimed (all) · wish (id) ·
-- lane (place = its number in the request, run = rows taken from it, priority and pos = the last of them, id = the highest
-- position given out before, failed = microseconds spent, lost = 1 when the scan began at the very front, attempts = rows
-- wanted). extras are the bits of `job`, with 32 for steps that earlier runs have left.
-- Lock: none. Index: none. Differs: PostgreSQL only.
create type {schema}.exchanged_2 as (
    kind text, place int, id bigint, run int, priority int, pos bigint, failed int, lost int, interrupted int, snoozed int,
    attempts int, timeout interval, enqueued_at timestamptz, claimed_at timestamptz, queue text, task text, tenant text,
    tags text[], correlation_id text, args bytea, extras smallint, trigger text
);
