-- What an end means for the rest of a job with extras: gives back its unique key, remembers the version that completed, lets
-- go of its ordering key and its limits, counts it in its batch, and enqueues its follow-ups. p_states says where each job is now.
-- Lock: keys FOR UPDATE SKIP LOCKED; versions are rows of their own, so that nobody waits for a caller's transaction; then
-- those of let_go_1 and follow_up_2. Index: unique_key_id, job_pkey, newest_pkey, follow_pkey. Differs: SQLite has one writer.
create function {schema}.settle_ends_2(p_ids bigint[], p_states text[], p_own boolean, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_keys bytea[];
    v_versions bigint[];
    v_extras int;
begin
    select bit_or(j.extras::int) into v_extras
      from unnest(p_ids) as u (id) cross join lateral (select j.extras from job j where j.id = u.id offset 0) j;
    perform let_go_1(p_ids, p_states, v_extras & 64 <> 0, p_now);
    if v_extras & 12 <> 0 then
        perform free_unique_1(array(
            select u.id from unnest(p_ids, p_states) as u (id, state) where u.state not in ('ready', 'scheduled')), true);
        with done as (
            insert into newest (key, version, id, until)
            select j.unique_key, j.version, j.id, p_now + interval '30 days'
              from unnest(p_ids, p_states) as u (id, state) cross join lateral (
                select j.id, j.unique_key, j.version from job j
                 where u.state = 'completed' and j.id = u.id and j.extras & 8 <> 0 and j.unique_key is not null offset 0) j
                on conflict do nothing
            returning key, version
        )
        select array_agg(d.key), array_agg(d.version) into v_keys, v_versions from done d;
        if v_keys is not null then
            delete from newest where ctid = any(array(
                select x.tid from unnest(v_keys, v_versions) as u (key, version) cross join lateral (
                    select n.ctid as tid from newest n
                     where n.key = u.key and n.version < u.version for update skip locked) x));
        end if;
    end if;
    if v_extras & 128 <> 0 then
        perform count_batch_1(p_ids, p_states, p_own);
    end if;
    if v_extras & 3 <> 0 then
        perform follow_up_2(p_ids, p_states, p_own, p_now);
    end if;
end
$$;
