-- Fixed groups in which a job has died since are new from now on; each is answered once.
-- Lock: their rows, none of which is waited for. Index: the table, groups only; died_since_1. Differs: none.
create function {schema}.regress_dead_1(p_most int) returns setof {schema}.dead_group
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    return query
    with regressed as (
        select g.fingerprint, g.queue, g.task, died_since_1(g.fingerprint, g.queue, g.task, g.at) as died_at
          from dead_group g
         where g.state = 'fixed' and died_since_1(g.fingerprint, g.queue, g.task, g.at) is not null
         order by g.fingerprint, g.queue, g.task limit p_most for update skip locked
    ), changed as (
        update dead_group g set state = 'new', regressed_at = r.died_at from regressed r
         where g.fingerprint = r.fingerprint and g.queue = r.queue and g.task = r.task
        returning g.*
    )
    select * from changed c order by c.fingerprint, c.queue, c.task;
end
$$;
