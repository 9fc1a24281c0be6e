-- Add to what happened. Lock: the write lock. Index: primary key.
insert into {prefix}_tally (span, at, queue, task, completed, skipped, dead, cancelled, shed, failed, lost, timeout,
    redelivered, redriven, suppressed, waited, ran)
values (:span, :at, :queue, :task, :completed, :skipped, :dead, :cancelled, :shed, :failed, :lost, :timeout,
    :redelivered, :redriven, :suppressed, :waited, :ran)
on conflict (span, at, queue, task) do update set completed = completed + excluded.completed,
    skipped = skipped + excluded.skipped, dead = dead + excluded.dead, cancelled = cancelled + excluded.cancelled,
    shed = shed + excluded.shed, failed = failed + excluded.failed, lost = lost + excluded.lost,
    timeout = timeout + excluded.timeout, redelivered = redelivered + excluded.redelivered,
    redriven = redriven + excluded.redriven, suppressed = suppressed + excluded.suppressed,
    waited = waited + excluded.waited, ran = ran + excluded.ran
