-- Counts the next minutes that are over into tallies by the minute and by the hour; how many.
-- Lock: advisory try-lock. Index: tally_parts_1, tally_pkey, sweep_pkey. Differs: SQLite counts before it takes its lock.
create function {schema}.fold_tally_1(
    p_lag float8, p_minutes float8, p_hours float8, p_chunk float8, p_now timestamptz) returns int
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_over timestamptz := date_trunc('minute', coalesce(p_now, clock_timestamp()) - p_lag * interval '1 second', 'UTC');
    v_since timestamptz;
    v_until timestamptz;
begin
    perform require_read_committed_1();
    if not pg_try_advisory_xact_lock(door_class_1(), hashtext('tally')) then
        return 0;
    end if;
    v_since := (select s.last_at from sweep s where s.name = 'tally');
    v_since := case when v_since is null then v_over - p_minutes * interval '1 second'
                    else greatest(v_since, v_over - p_hours * interval '1 second') end;
    v_until := least(v_over, v_since + p_chunk * interval '1 second');
    if v_until <= v_since then
        return 0;
    end if;
    with part as materialized (
        select * from tally_parts_1(v_since, v_until)
    )
    insert into tally as t (span, at, queue, task, completed, skipped, dead, cancelled, shed, failed, lost, timeout, redelivered,
                            redriven, suppressed, waited, ran)
    select s.span, case s.span when 1 then p.at else date_trunc('hour', p.at, 'UTC') end, p.queue, p.task, sum(p.completed),
           sum(p.skipped), sum(p.dead), sum(p.cancelled), sum(p.shed), sum(p.failed), sum(p.lost), sum(p.timeout),
           sum(p.redelivered), sum(p.redriven), sum(p.suppressed), sum(p.waited), sum(p.ran)
      from part p cross join (values (1), (60)) s (span)
     group by 1, 2, 3, 4
        on conflict (span, at, queue, task) do update set
           completed = t.completed + excluded.completed, skipped = t.skipped + excluded.skipped, dead = t.dead + excluded.dead,
           cancelled = t.cancelled + excluded.cancelled, shed = t.shed + excluded.shed, failed = t.failed + excluded.failed,
           lost = t.lost + excluded.lost, timeout = t.timeout + excluded.timeout,
           redelivered = t.redelivered + excluded.redelivered, redriven = t.redriven + excluded.redriven,
           suppressed = t.suppressed + excluded.suppressed, waited = t.waited + excluded.waited, ran = t.ran + excluded.ran;
    delete from tally t where t.span = 1 and t.at < v_over - p_minutes * interval '1 second';
    delete from tally t where t.span = 60 and t.at < v_over - p_hours * interval '1 second';
    insert into sweep (name, last_at) values ('tally', v_until) on conflict (name) do update set last_at = excluded.last_at;
    return extract(epoch from v_until - v_since)::int / 60;
end
$$;
