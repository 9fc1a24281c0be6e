-- Nothing that takes this limit starts for so many seconds; until when. A longer hold stays, with its author.
-- Lock: the limit_state row. Index: limit_state_pkey. Differs: none.
create function {schema}.hold_limit_1(p_name text, p_wait float8, p_by text, p_reason text, p_now timestamptz) returns timestamptz
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_until timestamptz;
begin
    insert into limit_state as s (key, name, policy, held_until, held_by, held_reason)
    values (key_of_1(p_name), p_name, key_of_1(policy_of_1(p_name)), v_now + p_wait * interval '1 second', p_by,
            p_reason)
        on conflict (key) do update set
            held_until = greatest(s.held_until, excluded.held_until),
            held_by = case when s.held_until > excluded.held_until then s.held_by else excluded.held_by end,
            held_reason = case when s.held_until > excluded.held_until then s.held_reason else excluded.held_reason end
    returning s.held_until into v_until;
    insert into released (due, kind, key) values ('-infinity', 2, key_of_1(p_name));
    perform note_act_1('hold ' || p_name, p_by, p_reason, 0, v_now);
    return v_until;
end
$$;
