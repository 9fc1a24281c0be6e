-- Bytes that duly's relations use, after measuring them anew when that is older than p_age, unless somebody else is at it.
-- Files never shrink by themselves; so how much of them is in use is told by a sample of at most about 300 blocks of `job`:
-- what else there is comes and goes with it.
-- Lock: advisory try-lock of the transaction. Index: store_use_pkey; pg_class by schema. Differs: SQLite knows its pages.
create function {schema}.measure_use_1(p_age interval, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_files bigint;
    v_space float8;
    v_share float8 := 1;
begin
    if exists (select 1 from store_use s where s.at > p_now - p_age and s.at <= p_now)
       or not pg_try_advisory_xact_lock(door_class_1(), hashtext('use')) then
        return;
    end if;
    select coalesce(sum(pg_total_relation_size(c.oid)), 0) into v_files
      from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r';
    v_space := pg_table_size('job');
    if v_space > 0 then
        -- 180: a row without its arguments, tags and names.
        select least(1, coalesce(sum(180 + pg_column_size(j.args) + coalesce(pg_column_size(j.tags), 0)
                                     + pg_column_size(j.queue) + pg_column_size(j.task) + pg_column_size(j.tenant)), 0)
                        / least(v_space, 8192 * 300.0)) into v_share
          from job j tablesample system (least(100, 100 * 300 * 8192.0 / v_space));
    end if;
    -- At most one is kept of each second.
    delete from store_use s
     where s.at > p_now - interval '1 second' and s.at < p_now
       and exists (select 1 from store_use o where o.at < s.at and o.at > s.at - interval '1 second');
    insert into store_use (at, used, files) values (p_now, v_files * v_share, v_files)
        on conflict (at) do nothing;
    delete from store_use where at < p_now - interval '10 minutes' or at > p_now;
end
$$;
