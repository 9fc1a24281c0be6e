-- Claims of many ordering keys and limits at once: what they looked for in arrays row by row took time by the square.
-- Lock: none but those of functions. Workers of the previous release call the new ones, too. Differs: PostgreSQL only.

-- include: functions/call_followers_2.sql
-- include: functions/admitted_order_2.sql
-- include: functions/take_2.sql
-- include: functions/regate_2.sql
-- include: functions/admit_2.sql
-- What exchange_3 and claim_freed_1 call.
create or replace function {schema}.admit_1(
    p_incarnation bigint, p_known jsonb, p_paused_tasks bigint[], p_lanes bigint[], p_caps int[], p_most int, p_chain int,
    p_ids bigint[], p_staged bigint[], p_waited bigint[], p_counted boolean, p_now timestamptz
) returns setof {schema}.exchanged_3
language plpgsql as $$
begin
    return query
    select a.* from admit_2(p_incarnation, p_known, p_paused_tasks, p_lanes, p_caps, p_most, p_chain, p_ids, p_staged, p_waited,
                            p_counted, p_now) a;
end
$$;
