-- Keeps a finished step of a live attempt; false when the attempt is not live. The first value stays.
-- Lock: the claimed row FOR KEY SHARE. Index: claimed_pkey, step_pkey. Differs: SQLite needs no lock.
create function {schema}.keep_step_1(p_incarnation bigint, p_id bigint, p_run int, p_name text, p_value bytea) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
begin
    perform 1 from claimed c where c.incarnation = p_incarnation and c.id = p_id and c.run = p_run for key share;
    if not found then
        return false;
    end if;
    insert into step as s (id, name, value) values (p_id, p_name, p_value)
        on conflict (id, name) do update set value = excluded.value where s.value is null;
    return true;
end
$$;
