-- Finds what nobody would look at again: heads that are gone, dead ones whose queue skips them now, keys that wait for
-- nothing, heads without work. Walks on by key from where the last round stopped, 1,000 a round.
-- Lock: dead rows FOR UPDATE SKIP LOCKED, then key_head rows likewise, looked at again before they are deleted.
-- Index: key_head_pkey, keyed_pkey, blocked_gate, job_pkey, queue_key and the tables' id indexes. Differs: none.
create function {schema}.heal_keys_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_last bigint;
    v_walked int;
    v_gone bigint[];
    v_skipped bigint[];
    v_dead bigint[];
    v_stuck bigint[];
    v_idle bigint[];
begin
    with walked as materialized (
        select h.key, h.id,
               not coalesce((select true from ready r where r.id = h.id limit 1),
                            (select true from scheduled s where s.id = h.id), (select true from blocked b where b.id = h.id),
                            (select true from claimed c where c.id = h.id), (select true from dead d where d.id = h.id),
                            h.id is null) as gone,
               (select true from dead d cross join lateral (select j.queue_key from job j where j.id = d.id offset 0) j
                  join queue q on q.key = j.queue_key
                 where d.id = h.id and q.ordering = 'skip_dead' and not h.paused) as skipped,
               (select k.id from keyed k where k.key = h.key order by k.key, k.id limit 1) as first,
               (select k.id from keyed k where k.key = h.key and k.id = h.id) as owned, h.paused
          from key_head h
         where h.key > coalesce((select s.position from sweep s where s.name = 'key heads'), -9223372036854775808)
         order by h.key limit 1000
    )
    select count(*), max(w.key), array_agg(w.key) filter (where w.gone), array_agg(w.key) filter (where w.skipped),
           array_agg(w.key) filter (
                where not w.paused and w.first is not null
                  and (w.owned is null or (select true from blocked b where b.id = w.id and b.cause = 3))),
           array_agg(w.key) filter (where w.first is null and not w.paused)
      into v_walked, v_last, v_gone, v_skipped, v_stuck, v_idle from walked w;
    insert into sweep (name, last_at, position)
    values ('key heads', p_now, case when v_walked = 1000 then v_last else -9223372036854775808 end)
        on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
    if v_gone is not null then
        delete from keyed k using key_head h where h.key = any(v_gone) and k.key = h.key and k.id = h.id
           and (select true from ready r where r.id = k.id limit 1) is null
           and (select true from scheduled s where s.id = k.id limit 1) is null
           and (select true from blocked b where b.id = k.id limit 1) is null
           and (select true from claimed c where c.id = k.id limit 1) is null
           and (select true from dead d where d.id = k.id limit 1) is null;
    end if;
    -- Its queue skips the dead since. A key that was paused waits for a person.
    if v_skipped is not null then
        -- Whoever lets one run again meanwhile has locked it, and it keeps its place; or waits, and gives it one anew.
        v_dead := array(
            select x.id from key_head h cross join lateral (
                select d.id from dead d where d.id = h.id for update skip locked) x where h.key = any(v_skipped));
        delete from keyed k using key_head h where h.key = any(v_skipped) and not h.paused and k.key = h.key and k.id = h.id
           and not k.paused and k.id = any(v_dead);
    end if;
    if v_idle is not null then
        v_idle := array(select x.key from unnest(v_idle) as u (key) cross join lateral (
            select h.key from key_head h where h.key = u.key for update skip locked) x);
        delete from key_head h where h.key = any(v_idle) and not h.paused
           and (select true from keyed k where k.key = h.key limit 1) is null;
    end if;
    insert into released (due, kind, key)
    select '-infinity'::timestamptz, 1, u.key from unnest(v_gone || v_skipped || v_stuck) as u (key);
    if found then
        perform ring_1();
    end if;
end
$$;
