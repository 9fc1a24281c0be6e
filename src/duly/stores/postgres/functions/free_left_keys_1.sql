-- Removes unique keys that nobody holds any more: their job has ended, or was claimed under scope queued, while their row was
-- locked. Walks on by id from where the last round stopped, 5,000 rows a round.
-- Lock: the keys' rows FOR UPDATE SKIP LOCKED. Index: unique_key_id and the tables' id indexes. Differs: none.
create function {schema}.free_left_keys_1(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_ids bigint[];
    v_last bigint;
    v_tids tid[];
    v_walked int;
begin
    select array_agg(x.id) filter (where x.free), max(x.id), count(*) into v_ids, v_last, v_walked
      from (select k.id, not coalesce(
                (select k.live or r.run = k.run from ready r where r.id = k.id),
                (select k.live or s.run = k.run from scheduled s where s.id = k.id),
                (select k.live or b.run = k.run from blocked b where b.id = k.id),
                (select k.live from claimed c where c.id = k.id), false) as free
              from unique_key k
             where k.id > coalesce((select s.position from sweep s where s.name = 'left keys'), 0)
             order by k.id limit 5000) x;
    insert into sweep (name, last_at, position)
    values ('left keys', p_now, case when v_walked = 5000 then v_last else 0 end)
        on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
    if v_ids is null then
        return;
    end if;
    -- A redrive may take a key for the same job again: locked first, looked at again, then deleted.
    v_tids := array(
        select x.tid from unnest(v_ids) as u (id) cross join lateral (
            select k.ctid as tid from unique_key k where k.id = u.id for update skip locked) x);
    delete from unique_key k where k.ctid = any(v_tids) and not (key_holder_1(k.id, k.run, k.live, null)).taken;
end
$$;
