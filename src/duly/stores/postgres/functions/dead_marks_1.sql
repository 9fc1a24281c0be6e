-- What people say of groups of dead letters, the latest first; a fixed one in which a job has died since is new.
-- Lock: none. Index: the table, groups only; died_since_1. Differs: none.
create function {schema}.dead_marks_1(p_fingerprints text[], p_most int) returns setof {schema}.dead_group
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select g.fingerprint, g.queue, g.task, case when s.died_at is null then g.state else 'new' end, g.owner, g.note, g.by, g.at,
           coalesce(s.died_at, g.regressed_at)
      from dead_group g
     cross join lateral (
        select case when g.state = 'fixed' then died_since_1(g.fingerprint, g.queue, g.task, g.at) end as died_at) s
     where p_fingerprints is null or g.fingerprint = any(p_fingerprints)
     order by g.at desc, g.fingerprint, g.queue, g.task limit p_most
$$;
