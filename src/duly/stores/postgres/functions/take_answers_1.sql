-- Takes the keys of requests that are free. What stands under the others is answered, by the place of the key.
-- Lock: the rows, by key; another transaction's uncommitted key is waited for, with p_own for 10 s at most.
-- Index: answer_pkey. Differs: SQLite has one writer.
create function {schema}.take_answers_1(
    p_keys bytea[], p_tokens bigint[], p_hashes bytea[], p_holds float8[], p_own boolean, p_now timestamptz)
returns table (place bigint, token bigint, body_hash bytea, at timestamptz, expires_at timestamptz, status int, answer bytea)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_ask record;
begin
    if p_own then
        -- Sooner than the connection loses its patience.
        perform set_config('lock_timeout', '10s', true);
    end if;
    for v_ask in
        select u.key, u.token, u.hash, u.hold, u.place
          from unnest(p_keys, p_tokens, p_hashes, p_holds) with ordinality as u (key, token, hash, hold, place)
         order by u.key, u.place
    loop
        loop
            insert into answer as a (key, token, body_hash, at, expires_at)
            values (v_ask.key, v_ask.token, v_ask.hash, v_now, v_now + v_ask.hold * interval '1 second')
                on conflict (key) do update set token = excluded.token, body_hash = excluded.body_hash, status = 0,
                    answer = null, at = excluded.at, expires_at = excluded.expires_at
                 where a.expires_at <= excluded.at;
            exit when found;
            return query
            select v_ask.place, a.token, a.body_hash, a.at, a.expires_at, a.status, a.answer
              from answer a where a.key = v_ask.key;
            -- It may have been forgotten meanwhile.
            exit when found;
        end loop;
    end loop;
end
$$;
