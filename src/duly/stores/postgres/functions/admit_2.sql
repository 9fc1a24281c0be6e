-- Decides which of these blocked jobs may start now, and starts them: blocked -> running. One that is behind the head of its
-- ordering key or at a limit stays blocked, gated by what refused it; one that may go on and finds no slot here becomes ready in
-- its old place; expired and stale ones become skipped. With p_chain, up to so many of a key come together, behind one another.
-- All keys and limits are locked before anything of them is read, none is waited for, and what was locked by others is left
-- to be looked at again. p_staged are those that a claim has just taken from their lane, p_waited of these whom a limit has let
-- go on; p_counted: the lane keeps holders.
-- Lock: the blocked rows are the caller's; then those of lock_keys_1, ready rows of followers FOR UPDATE SKIP LOCKED, then those
-- of lock_limits_1. Index: blocked_pkey, job_pkey and those of the parts. Differs: SQLite has one writer.
create function {schema}.admit_2(
    p_incarnation bigint, p_known jsonb, p_paused_tasks bigint[], p_lanes bigint[], p_caps int[], p_most int, p_chain int,
    p_ids bigint[], p_staged bigint[], p_waited bigint[], p_counted boolean, p_now timestamptz
) returns setof {schema}.exchanged_3
language plpgsql as $$
#variable_conflict use_column
declare
    v_ids bigint[] := drop_ended_1(p_ids, p_now);
    v_keys bigint[];
    v_lanes bigint[];
    v_heads bigint[];
    v_followers bigint[];
    v_called bigint[] := '{}';
    v_all bigint[];
    v_takers bigint[];
    v_limits bigint[];
    v_names text[];
    v_policies bigint[];
    v_taking {schema}.taking_1;
    v_row record;
    v_place int;
    v_left int := p_most;
    v_run bigint[] := '{}';
    v_places int[] := '{}';
    v_follows boolean[] := '{}';
    v_back bigint[] := '{}';
    v_gated bigint[] := '{}';
    v_causes int[] := '{}';
    v_gates bigint[] := '{}';
    v_broken bigint[] := '{}';
begin
    select array_agg(j.ordering), array_agg(j.queue_key) into v_keys, v_lanes
      from unnest(v_ids) as u (id) cross join lateral (
        select j.ordering, j.queue_key from job j where j.id = u.id and j.extras & 64 <> 0 offset 0) j;
    if v_keys is not null then
        select array_agg(h.id), array_agg(h.id) filter (where h.first), array_agg(h.key) filter (where h.first)
          into v_heads, v_lanes, v_keys
          from key_heads_1(lock_keys_1(v_keys, v_lanes, p_now), p_now) h where h.id = any(v_ids);
        if p_chain > 1 and p_most > 1 and v_keys is not null then
            select f.followers, f.called into v_followers, v_called
              from call_followers_2(v_keys, v_lanes, p_known, p_paused_tasks, p_chain, p_most, p_now) f;
        end if;
    end if;
    v_all := array(select distinct u.id from unnest(v_ids || v_followers) as u (id));
    select array_agg(l.id), array_agg(l.key), array_agg(l.name), array_agg(l.policy)
      into v_takers, v_limits, v_names, v_policies from limits_of_1(v_all) l;
    if v_limits is not null then
        v_taking := begin_taking_1(v_limits, v_names, v_policies, v_all, p_now);
    end if;
    for v_row in select o.* from admitted_order_2(v_ids, v_heads, v_followers, p_waited, v_takers, v_limits) o loop
        continue when v_row.lead = any(v_broken);
        if not v_row.open then
            if v_row.cause <> 3 or v_row.gate <> v_row.ordering then
                v_gated := v_gated || v_row.id;
                v_causes := v_causes || 3;
                v_gates := v_gates || v_row.ordering;
            end if;
            continue;
        end if;
        v_place := array_position(p_lanes, v_row.queue);
        if v_left <= 0 or coalesce(p_caps[v_place], 0) <= 0 then
            v_broken := v_broken || coalesce(v_row.lead, v_row.id);
            if v_row.lead is null then
                v_back := v_back || v_row.id;
            end if;
            continue;
        end if;
        if v_row.limits <> '{}' then
            v_taking := take_2(v_taking, v_row.id, v_row.limits,
                               v_row.lead is null and v_row.cause = 4 and v_row.since <= p_now - interval '30 seconds', p_now);
            if v_taking.gate is not null then
                v_broken := v_broken || coalesce(v_row.lead, v_row.id);
                if v_row.lead is null and (v_row.cause <> 4 or v_row.gate <> v_taking.gate) then
                    v_gated := v_gated || v_row.id;
                    v_causes := v_causes || 4;
                    v_gates := v_gates || v_taking.gate;
                end if;
                continue;
            end if;
        end if;
        v_run := v_run || v_row.id;
        v_places := v_places || v_place;
        v_follows := v_follows || (v_row.lead is not null);
        v_left := v_left - 1;
        p_caps[v_place] := p_caps[v_place] - 1;
    end loop;
    -- Followers from `ready` that do not come along stay where they were.
    v_back := v_back || array(
        select u.id from unnest(v_called) as u (id) where u.id not in (select r.id from unnest(v_run) as r (id)));
    if v_run <> '{}' then
        return query select c.* from claim_blocked_1(p_incarnation, p_known, v_run, v_places, v_taking.taken_ids, v_follows,
                                                     p_staged, p_counted, p_now) c;
    end if;
    if v_gated <> '{}' then
        perform regate_2(v_gated, v_causes, v_gates, p_now);
    end if;
    if v_back <> '{}' then
        perform unblock_1(v_back, p_now);
    end if;
    if v_limits is not null then
        perform finish_taking_1(v_taking, v_run, p_incarnation, p_now);
    end if;
end
$$;
