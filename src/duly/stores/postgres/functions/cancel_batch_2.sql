-- A batch that has not ended -> cancelled; with p_whole also its members, as cancel_2, and the batches inside. Answers the
-- state after it; NULL when there is no such batch.
-- Lock: the batch, then those of cancel_2. Index: batch_pkey, batch_member_pkey, batch_parent. Differs: none.
create function {schema}.cancel_batch_2(p_id bigint, p_by text, p_reason text, p_whole boolean, p_now timestamptz) returns text
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_state text;
begin
    update batch b set state = 'cancelled', finished_at = v_now, reason = p_reason
     where b.id = p_id and b.state in ('open', 'running', 'dead');
    if found then
        perform note_act_2('cancel', 'batch:' || p_id, p_by, p_reason, '{}', v_now);
        insert into batch_done (batch) values (p_id);
        perform tell_batches_1();
    end if;
    v_state := (select b.state from batch b where b.id = p_id);
    if p_whole and v_state = 'cancelled' then
        perform cancel_2(array(select m.id from batch_member m where m.batch = p_id order by m.id), p_by, p_reason, p_now);
        perform cancel_batch_2(b.id, p_by, p_reason, true, p_now) from batch b
          where b.parent = p_id and b.state <> 'cancelled';
    end if;
    return v_state;
end
$$;
