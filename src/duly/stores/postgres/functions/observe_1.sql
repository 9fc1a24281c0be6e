-- Counts calls of resources with a breaker; answers those whose breaker changed. Open when the share of failures within the
-- window passes its bound; half-open after the cool-down, when the next word decides.
-- Lock: limit_state rows by key. Index: limit_policy_pkey, limit_state_pkey. Differs: SQLite's is Python.
create function {schema}.observe_1(p_names text[], p_calls bigint[], p_failures bigint[], p_now timestamptz) returns setof text
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_seen record;
    v_state record;
    v_cool interval;
begin
    for v_seen in
        select u.name, p.key, u.calls, u.failures, p.breaker
          from unnest(p_names, p_calls, p_failures) as u (name, calls, failures)
          join limit_policy p on p.key = key_of_1(u.name) and p.breaker is not null
         where u.calls > 0 order by p.key
    loop
        insert into limit_state (key, name, policy) values (v_seen.key, v_seen.name, v_seen.key) on conflict (key) do nothing;
        select s.breaker_state, s.breaker_until, s.window_at, s.calls, s.failures, s.forced into v_state
          from limit_state s where s.key = v_seen.key for update;
        continue when v_state.forced is not null or v_state.breaker_state = 'open' and v_state.breaker_until > v_now;
        v_cool := (v_seen.breaker ->> 'cool_down')::float8 * interval '1 second';
        if v_state.breaker_state is distinct from 'open' then
            if v_state.window_at is null
                or v_state.window_at + (v_seen.breaker ->> 'window')::float8 * interval '1 second' <= v_now then
                v_state.window_at := v_now;
                v_state.calls := 0;
                v_state.failures := 0;
            end if;
            v_state.calls := v_state.calls + v_seen.calls;
            v_state.failures := v_state.failures + v_seen.failures;
            if v_state.calls < (v_seen.breaker ->> 'min_calls')::int
                or v_state.failures < (v_seen.breaker ->> 'failures')::float8 * v_state.calls then
                update limit_state s set window_at = v_state.window_at, calls = v_state.calls, failures = v_state.failures
                 where s.key = v_seen.key;
                continue;
            end if;
        end if;
        update limit_state s set calls = 0, failures = 0, window_at = null,
               breaker_state = case when x.tripped then 'open' end, breaker_until = case when x.tripped then v_now + v_cool end
          from (select v_state.breaker_state is distinct from 'open' or v_seen.failures > 0 as tripped) x
         where s.key = v_seen.key;
        insert into released (due, kind, key) values ('-infinity', 2, v_seen.key);
        perform ring_1();
        return next v_seen.name;
    end loop;
end
$$;
