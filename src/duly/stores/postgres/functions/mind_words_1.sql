-- Remembers up to where only dead entries stand in `released`, so that no exchange wades through them while an old snapshot
-- keeps them: words by number, timers by time, nothing of the last two seconds. What a transaction commits later than that
-- stands behind these marks, and gets a number anew.
-- Lock: released rows FOR UPDATE SKIP LOCKED. Index: released_pkey, sweep_pkey. Differs: PostgreSQL only.
create function {schema}.mind_words_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_timer timestamptz;
    v_word bigint;
    v_ahead record;
begin
    select s.last_at, s.position into v_timer, v_word from sweep s where s.name = 'words';
    -- Also where the clock went back.
    v_timer := least(coalesce(v_timer, '-infinity'), p_now - interval '2 seconds');
    v_word := coalesce(v_word, 0);
    with late as (
        delete from released where ctid = any(array(
            select r.ctid from released r where r.due = '-infinity' and r.number <= v_word
             order by r.due, r.number limit 5000 for update skip locked)
            || array(
            select r.ctid from released r where r.due > '-infinity' and r.due <= v_timer
             order by r.due, r.number limit 5000 for update skip locked))
        returning kind, key
    )
    insert into released (due, kind, key) select '-infinity', l.kind, l.key from late l;
    if found then
        perform ring_1();
    end if;
    select s.last_at, s.position into v_ahead from sweep s where s.name = 'words ahead';
    if not found or v_ahead.last_at <= p_now - interval '2 seconds' then
        if found then
            v_word := greatest(v_word, least(v_ahead.position, (
                select r.number - 1 from released r where r.due = '-infinity' and r.number > v_word
                 order by r.due, r.number limit 1)));
        end if;
        insert into sweep (name, last_at, position)
        values ('words ahead', p_now, nextval(pg_get_serial_sequence('released', 'number')))
            on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
    end if;
    v_timer := greatest(v_timer, least(p_now - interval '2 seconds', (
        select r.due - interval '1 microsecond' from released r where r.due > v_timer
         order by r.due, r.number limit 1)));
    insert into sweep (name, last_at, position) values ('words', v_timer, v_word)
        on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
end
$$;
