-- A reading of what the database and the queue in it have used so far, for what `status` says of the queue's share: at most
-- one in 30 s, kept for 2 h. Statements and WAL of ours come from pg_stat_statements, null without it or without the right to
-- see all of it; a statement of ours is one that names this schema. Counters only grow, until somebody resets statistics.
-- Lock: none (the sweep's turn). Index: load_sample_pkey, sweep_pkey. Differs: PostgreSQL only.
create function {schema}.keep_load_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_last timestamptz := (select s.last_at from sweep s where s.name = 'load');
    v_home text;
    v_statements bigint;
    v_wal bigint;
begin
    if v_last > p_now - interval '30 seconds' and v_last <= p_now then
        return;
    end if;
    insert into sweep (name, last_at) values ('load', p_now)
        on conflict (name) do update set last_at = excluded.last_at;
    select n.nspname into v_home
      from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements';
    if v_home is not null then
        begin
            -- Where others' statements are hidden from the owner of this schema, what of all is ours is not known.
            execute format('select case when not bool_or(s.query = $2) then coalesce(sum(s.calls) filter (where o.ours), 0) end,
                                   case when not bool_or(s.query = $2) then coalesce(sum(s.wal_bytes) filter (where o.ours), 0) end
                              from %I.pg_stat_statements s join pg_database d on d.oid = s.dbid
                             cross join lateral (select strpos(s.query, $1) > 0 as ours) o
                             where s.toplevel and d.datname = current_database()', v_home)
               into v_statements, v_wal using '{schema}.', '<insufficient privilege>';
        exception when others then
            -- Created, but not loaded by the server, or of a release without these columns: as good as absent.
            v_statements := null;
            v_wal := null;
        end;
    end if;
    insert into load_sample (at, commits, written, wal, own_statements, own_wal, own_written)
    select p_now, d.xact_commit, d.tup_inserted + d.tup_updated + d.tup_deleted, (select w.wal_bytes from pg_stat_wal w),
           v_statements, v_wal,
           (select coalesce(sum(t.n_tup_ins + t.n_tup_upd + t.n_tup_del), 0) from pg_stat_user_tables t
             where t.schemaname = current_schema())
      from pg_stat_database d where d.datname = current_database()
        on conflict (at) do nothing;
    delete from load_sample where at < p_now - interval '2 hours';
end
$$;
