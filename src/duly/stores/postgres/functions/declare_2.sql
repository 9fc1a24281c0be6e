-- Records what a release of an App declares; false, and nothing is changed, when a release of the same origin that was first
-- seen later has declared before. Queues and tasks stay when they are no longer declared, schedules do not. A schedule keeps
-- its next due time and its pause unless its definition has changed.
-- Lock: advisory, one declaration of an origin at a time; then the rows, by name. Index: the tables' primary keys.
-- Differs: SQLite has one writer.
create function {schema}.declare_2(
    p_origin text, p_release text, p_queues text[], p_owners text[], p_keep float8[], p_keep_dead float8[], p_tasks text[],
    p_task_queues text[], p_priorities int[], p_expires float8[], p_schedules text[], p_definitions jsonb,
    p_first timestamptz[], p_now timestamptz
) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_latest timestamptz;
begin
    perform require_read_committed_1();
    perform pg_advisory_xact_lock(door_class_1(), hashtext('declare ' || p_origin));
    select max(r.first_seen) into v_latest from release r where r.origin = p_origin;
    -- Later than all others, even by a clock that was set back.
    insert into release (origin, release, first_seen)
    values (p_origin, p_release, greatest(v_now, v_latest + interval '1 microsecond'))
        on conflict (origin, release) do nothing;
    if not found and v_latest > (
        select r.first_seen from release r where r.origin = p_origin and r.release = p_release) then
        return false;
    end if;
    insert into queue as q (name, key, owner, keep, keep_dead)
    select u.name, key_of_1(u.name), u.owner, u.keep * interval '1 second', u.keep_dead * interval '1 second'
      from unnest(p_queues, p_owners, p_keep, p_keep_dead) as u (name, owner, keep, keep_dead) order by u.name
        on conflict (name) do update set owner = excluded.owner, keep = excluded.keep, keep_dead = excluded.keep_dead
         where (q.owner, q.keep, q.keep_dead) is distinct from (excluded.owner, excluded.keep, excluded.keep_dead);
    insert into task as t (name, key, queue, priority, expires)
    select u.name, key_of_1(u.name), u.queue, u.priority, u.expires * interval '1 second'
      from unnest(p_tasks, p_task_queues, p_priorities, p_expires) as u (name, queue, priority, expires) order by u.name
        on conflict (name) do update set key = excluded.key, queue = excluded.queue, priority = excluded.priority,
                                         expires = excluded.expires
         where (t.key, t.queue, t.priority, t.expires)
               is distinct from (excluded.key, excluded.queue, excluded.priority, excluded.expires);
    delete from schedule s where s.origin = p_origin and s.origin <> '' and s.name <> all(p_schedules);
    insert into schedule as s (name, origin, definition, next_at, created_at)
    select u.name, p_origin, p_definitions -> (u.place::int - 1), u.first, v_now
      from unnest(p_schedules, p_first) with ordinality as u (name, first, place) order by u.name
        on conflict (name) do update set origin = excluded.origin, definition = excluded.definition,
            next_at = case when s.definition = excluded.definition then s.next_at else excluded.next_at end,
            failure = case when s.definition = excluded.definition then s.failure end,
            failed_at = case when s.definition = excluded.definition then s.failed_at end,
            failures = case when s.definition = excluded.definition then s.failures else 0 end
         where s.origin <> excluded.origin or s.definition <> excluded.definition;
    return true;
end
$$;
