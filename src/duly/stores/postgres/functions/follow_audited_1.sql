-- Writes how the next audited jobs have ended, each once: how many, and up to which id it looked (0: to the end).
-- Lock: `audited`, its rows, skipping those of others. Index: audited_pkey, job_pkey, finished_pkey, dead_pkey.
-- Differs: SQLite looks without a lock first.
create function {schema}.follow_audited_1(
    p_after bigint, p_most int, p_by text, p_not_kept text, p_now timestamptz, out written int, out looked bigint)
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_row record;
    v_count int := 0;
begin
    perform require_read_committed_1();
    written := 0;
    looked := 0;
    for v_row in
        select a.id, a.dead_run, j.id as kept, j.queue, j.task, j.tenant, f.id as finished, d.id as died,
               coalesce(f.status, case when d.id is not null then 'dead' else 'unknown' end) as state,
               coalesce(f.run, d.run) as run,
               case when f.id is not null then f.reason when d.id is not null then d.reason else p_not_kept end as reason
          from audited a
          left join job j on j.id = a.id
          left join finished f on f.id = a.id
          left join dead d on d.id = a.id
         where a.id > p_after
         order by a.id
         limit p_most
           for update of a skip locked
    loop
        v_count := v_count + 1;
        looked := v_row.id;
        continue when v_row.finished is null and v_row.died is null and v_row.kept is not null;
        continue when v_row.finished is null and v_row.died is not null and v_row.run is not distinct from v_row.dead_run;
        if v_row.finished is null and v_row.died is not null then
            update audited a set dead_run = v_row.run where a.id = v_row.id;
        else
            delete from audited a where a.id = v_row.id;
        end if;
        perform note_act_2('end', 'job:' || v_row.id, p_by, coalesce(v_row.reason, ''),
                           json_build_object('state', v_row.state, 'run', v_row.run, 'queue', v_row.queue,
                                             'task', v_row.task, 'tenant', v_row.tenant)::text, p_now);
        written := written + 1;
    end loop;
    if v_count < p_most then
        looked := 0;
    end if;
end
$$;
