-- Tells every worker which tasks and queues are bounded: it stands in their own rows, which each claim reads anyway. A worker that
-- registers meanwhile is told by the sweep.
-- Lock: worker rows, which claims only lock FOR KEY SHARE. Index: none. Differs: PostgreSQL only.
create function {schema}.tell_bounds_1() returns void
language plpgsql as $$
begin
    update worker w set bound_tasks = b.tasks, bound_queues = b.queues
      from bounds_1() b
     where w.incarnation = any(array(
        select w.incarnation from worker w, bounds_1() b
         where (w.bound_tasks, w.bound_queues) is distinct from (b.tasks, b.queues) order by w.incarnation for no key update of w));
end
$$;
