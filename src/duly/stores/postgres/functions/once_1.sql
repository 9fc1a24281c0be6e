-- Takes a key for so many seconds; true the first time within them.
-- Lock: another transaction's uncommitted key is waited for, with p_own for 10 s at most. Index: once_pkey.
-- Differs: SQLite has one writer.
create function {schema}.once_1(p_key bytea, p_keep float8, p_own boolean, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_until timestamptz := least(v_now + p_keep * interval '1 second', '9999-01-01Z');
    v_had timestamptz;
begin
    if p_own then
        -- Sooner than the connection loses its patience.
        perform set_config('lock_timeout', '10s', true);
    end if;
    loop
        insert into once (key, until) values (p_key, v_until) on conflict (key) do nothing;
        if found then
            return true;
        end if;
        select o.until into v_had from once o where o.key = p_key;
        continue when not found;
        if v_had > v_now then
            return false;
        end if;
        update once o set until = v_until where o.key = p_key and o.until <= v_now;
        if found then
            return true;
        end if;
    end loop;
end
$$;
