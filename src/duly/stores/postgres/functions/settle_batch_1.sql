-- Folds what was counted of one batch that the caller has locked, lets it come to its state and enqueues what follows.
-- Lock: those of follow_up_2. Index: batch_done_pkey, batch_pkey. Differs: SQLite asks core.batch.
create function {schema}.settle_batch_1(p_id bigint, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_batch {schema}.batch;
    v_before text;
    v_told text;
    -- Also when it was redriven since.
    v_mourns boolean := exists (select from batch_done d where d.batch = p_id and d.dead > 0);
begin
    with gone as (
        delete from batch_done d where d.batch = p_id
        returning d.total, d.completed, d.skipped, d.cancelled, d.shed, d.dead
    )
    update batch b
       set total = b.total + g.total, completed = b.completed + g.completed, skipped = b.skipped + g.skipped,
           cancelled = b.cancelled + g.cancelled, shed = b.shed + g.shed, dead = b.dead + g.dead
      from (select coalesce(sum(g.total), 0)::int as total, coalesce(sum(g.completed), 0)::int as completed,
                   coalesce(sum(g.skipped), 0)::int as skipped, coalesce(sum(g.cancelled), 0)::int as cancelled,
                   coalesce(sum(g.shed), 0)::int as shed, coalesce(sum(g.dead), 0)::int as dead
              from gone g) g
     where b.id = p_id
    returning b.* into v_batch;
    v_before := v_batch.state;
    v_mourns := (v_mourns or v_batch.dead > 0) and not v_batch.mourned and v_before <> 'cancelled';
    if v_before in ('running', 'dead') then
        v_batch.state := case
            when v_batch.total > v_batch.completed + v_batch.skipped + v_batch.cancelled + v_batch.shed + v_batch.dead
            then 'running' when v_batch.dead > 0 then 'dead' else 'completed' end;
    end if;
    v_told := case when v_batch.state in ('dead', 'completed', 'cancelled') then v_batch.state end;
    if v_batch.parent is not null and v_told is distinct from v_batch.told then
        insert into batch_done (batch, completed, cancelled, dead)
        select v_batch.parent, count(*) filter (where v_told = 'completed') - count(*) filter (where v_batch.told = 'completed'),
               count(*) filter (where v_told = 'cancelled') - count(*) filter (where v_batch.told = 'cancelled'),
               count(*) filter (where v_told = 'dead') - count(*) filter (where v_batch.told = 'dead');
    end if;
    update batch b
       set state = v_batch.state, told = v_told, mourned = b.mourned or v_mourns,
           finished_at = case when v_batch.state = 'completed' then coalesce(b.finished_at, p_now) else b.finished_at end
     where b.id = p_id;
    if v_mourns then
        perform follow_up_2(array[p_id], array['dead'], true, p_now);
    end if;
    if v_batch.state = 'completed' and v_before <> 'completed' then
        perform follow_up_2(array[p_id], array['completed'], true, p_now);
    end if;
end
$$;
