-- These blocked jobs in the order in which they are looked at: by priority and position, each head with its followers behind
-- it; those of several tenants one of each after the other, and of these first whom a limit has let go on. With what each
-- waits behind and the limits that it takes. lead is the head that a follower follows.
-- Lock: none. Index: blocked_pkey, job_pkey. Differs: none.
create function {schema}.admitted_order_1(
    p_ids bigint[], p_heads bigint[], p_followers bigint[], p_waited bigint[], p_takers bigint[], p_limits bigint[])
returns table (
    id bigint, ordering bigint, lead bigint, open boolean, cause int, gate bigint, queue bigint, since timestamptz,
    limits bigint[])
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    with begun as materialized (
        select b.id, b.priority, b.pos, b.cause::int, b.gate, b.queue, b.tenant, b.since, j.ordering, f.follower,
               j.ordering is null or b.id = any(p_heads) as head
          from (select u.id, false as follower from unnest(p_ids) as u (id) where (u.id = any(p_followers)) is not true
                 union all
                select u.id, true from unnest(p_followers) as u (id)) f
         cross join lateral (
            select b.id, b.priority, b.pos, b.cause, b.gate, b.queue, b.tenant, b.since from blocked b
             where b.id = f.id offset 0) b
         cross join lateral (
            select case when j.extras & 64 <> 0 then j.ordering end as ordering from job j where j.id = f.id offset 0) j
    ), waited as (
        select b.*, (b.id = any(p_waited)) is not true as fresh, min(b.tenant) over () <> max(b.tenant) over () as several
          from begun b
    ), placed as materialized (
        select w.*, case when w.several then row_number() over (partition by w.tenant, w.fresh order by w.priority, w.pos)
                         else 0 end as round
          from waited w
    )
    select b.id, b.ordering, case when b.follower then h.id end, b.follower or coalesce(b.head, false), b.cause, b.gate, b.queue,
           b.since,
           case when p_takers is not null
                then array(select l.key from unnest(p_takers, p_limits) with ordinality as l (id, key, place) where l.id = b.id
                            order by l.place) end
      from placed b
      left join lateral (
        select h.id, h.priority, h.pos, h.several and h.fresh as fresh, h.round from placed h
         where b.follower and h.head and h.ordering = b.ordering limit 1) h on true
     order by coalesce(h.fresh, b.several and b.fresh), coalesce(h.round, b.round), coalesce(h.priority, b.priority),
              coalesce(h.pos, b.pos), b.follower, b.id;
end
$$;
