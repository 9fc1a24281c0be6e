-- One row of an exchange's answer. kind: none (a claimed job) · lost (id, run: an end whose token is not live) · wish (id) ·
-- lane (one pass over a lane ends: place = its number in the request, run = rows taken in it, priority and pos = the last of
-- them, id = the highest position given out before, counts = {microseconds spent, 1 when it began at the very front, rows
-- wanted}) · aged (the same of a pass for the oldest heads) · fair (of one over tenants) · turn (place; id = the tenant served last in it, run = what is left
-- of its turn) · batch (somebody left word that batches have to be looked at) · again (timeout = come back after that long) · more (says nothing, see exchange_3). counts of a job are
-- {failed, lost, interrupted, snoozed}, NULL for {0, 0, 0, 0}. extras are the bits of `job`, with 32 for steps that earlier runs
-- have left, 512 for a job that follows the one before, 1024 for one that was admitted. Narrow, because there are many.
-- Lock: none. Index: none. Differs: PostgreSQL only.
create type {schema}.exchanged_3 as (
    kind text, place int, id bigint, run int, priority int, pos bigint, counts int[], attempts int, timeout interval,
    enqueued_at timestamptz, task text, tenant text, tags text[], correlation_id text, args bytea, extras smallint, trigger text,
    ordering_key text
);
