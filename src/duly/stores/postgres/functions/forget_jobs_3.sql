-- Deletes everything about jobs whose final row the caller has just deleted.
-- Lock: the rows; nobody else writes those of a final job. Index: the tables' id indexes, batch_member_pkey, keyed_pkey,
-- key_head_pkey. Differs: none.
create function {schema}.forget_jobs_3(p_ids bigint[]) returns void
language plpgsql as $$
declare
    v_extras int;
    v_keys bigint[];
    v_paused bigint[];
begin
    with gone as (delete from job where id = any(p_ids) returning id, extras, ordering, batch), left_batch as (
        delete from batch_member m using gone g where m.batch = g.batch and m.id = g.id
    ), left_key as (
        -- A dead one may have kept its key.
        delete from keyed k using gone g where k.key = g.ordering and k.id = g.id returning k.key, k.paused
    )
    select bit_or(g.extras::int), array(select distinct l.key from left_key l),
           array(select distinct l.key from left_key l where l.paused)
      into v_extras, v_keys, v_paused from gone g;
    if v_keys <> '{}' then
        insert into released (due, kind, key) select '-infinity'::timestamptz, 1, u.key from unnest(v_keys) as u (key);
        update key_head set paused = true where key = any(v_paused);
        perform ring_1();
    end if;
    delete from job_tag where id = any(p_ids);
    delete from attempt where id = any(p_ids);
    delete from result where id = any(p_ids);
    delete from progress where id = any(p_ids);
    delete from wish where id = any(p_ids);
    delete from step where id = any(p_ids);
    if v_extras <> 0 then
        delete from follow where id = any(p_ids);
        delete from owed where id = any(p_ids);
        delete from blob where id = any(p_ids);
        perform free_unique_1(p_ids, true);
    end if;
end
$$;
