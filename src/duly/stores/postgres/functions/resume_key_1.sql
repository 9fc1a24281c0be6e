-- Lets an ordering key go on: one that is paused, or one whose head is dead without that one. False when it does not wait.
-- Lock: the key_head row, waited for: claims hold it for one statement; then the dead row SKIP LOCKED. Index: key_head_pkey,
-- keyed_pkey, dead_pkey. Differs: none.
create function {schema}.resume_key_1(
    p_queue text, p_tenant text, p_key text, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_key bigint := key_of_1(ordering_name_1(p_queue, p_tenant, p_key));
    v_head record;
begin
    perform require_read_committed_1();
    select h.id, h.paused into v_head from key_head h where h.key = v_key for update;
    select coalesce(o.id, l.id) as id, coalesce(v_head.paused, false) or coalesce(o.paused, l.paused, false) as paused,
           exists (select 1 from dead d where d.id = coalesce(o.id, l.id)) as dead
      into v_head
      from (values (1)) one
      left join lateral (select k.id, k.paused from keyed k where k.key = v_key and k.id = v_head.id) o on true
      left join lateral (select k.id, k.paused from keyed k where k.key = v_key order by k.key, k.id limit 1) l on true;
    if v_head.dead then
        -- Whoever has locked it lets it run again, or forgets it: its place in the key is not ours to take.
        perform 1 from dead d where d.id = v_head.id for update skip locked;
        v_head.dead := found;
    end if;
    if not v_head.paused and not v_head.dead then
        return false;
    end if;
    update key_head h set paused = false where h.key = v_key;
    update keyed k set paused = false where k.key = v_key and k.id = v_head.id and k.paused;
    if v_head.dead then
        delete from keyed k where k.key = v_key and k.id = v_head.id;
    end if;
    insert into released (due, kind, key) values ('-infinity', 1, v_key);
    perform ring_1();
    perform note_act_1('resume key ' || p_key || ' of ' || p_queue, p_by, p_reason, 0, coalesce(p_now, clock_timestamp()));
    return true;
end
$$;
