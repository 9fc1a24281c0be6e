-- These blocked jobs in the order in which they are looked at: by priority and position, each head with its followers behind
-- it; those of several tenants one of each after the other, and of these first whom a limit has let go on. With what each
-- waits behind and the limits that it takes. lead is the head that a follower follows.
-- Nothing is looked for in an array once a row: a claim brings hundreds. Lock: none. Index: blocked_pkey, job_pkey.
-- Differs: none.
create function {schema}.admitted_order_2(
    p_ids bigint[], p_heads bigint[], p_followers bigint[], p_waited bigint[], p_takers bigint[], p_limits bigint[])
returns table (
    id bigint, ordering bigint, lead bigint, open boolean, cause int, gate bigint, queue bigint, since timestamptz,
    limits bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    v_limits jsonb;
begin
    if p_takers is not null then
        select jsonb_object_agg(g.id, g.keys) into v_limits
          from (select l.id, array_agg(l.key order by l.place) as keys
                  from unnest(p_takers, p_limits) with ordinality as l (id, key, place) group by l.id) g;
    end if;
    return query
    with begun as materialized (
        select b.id, b.priority, b.pos, b.cause::int, b.gate, b.queue, b.tenant, b.since, j.ordering, f.follower,
               j.ordering is null or b.id in (select h.id from unnest(p_heads) as h (id)) as head
          from (select u.id, false as follower from unnest(p_ids) as u (id)
                 where u.id not in (select o.id from unnest(p_followers) as o (id))
                 union all
                select u.id, true from unnest(p_followers) as u (id)) f
         cross join lateral (
            select b.id, b.priority, b.pos, b.cause, b.gate, b.queue, b.tenant, b.since from blocked b
             where b.id = f.id offset 0) b
         cross join lateral (
            select case when j.extras & 64 <> 0 then j.ordering end as ordering from job j where j.id = f.id offset 0) j
    ), waited as (
        select b.*, b.id not in (select w.id from unnest(p_waited) as w (id)) as fresh,
               min(b.tenant) over () <> max(b.tenant) over () as several
          from begun b
    ), placed as (
        select w.*, case when w.several then row_number() over (partition by w.tenant, w.fresh order by w.priority, w.pos)
                         else 0 end as round
          from waited w
    ), led as (
        select p.*, p.follower and first_value(p.head and not p.follower) over of_key as behind,
               first_value(p.id) over of_key as lead, first_value(p.several and p.fresh) over of_key as lead_fresh,
               first_value(p.round) over of_key as lead_round, first_value(p.priority) over of_key as lead_priority,
               first_value(p.pos) over of_key as lead_pos
          from placed p window of_key as (partition by p.ordering order by p.head and not p.follower desc)
    )
    select b.id, b.ordering, case when b.behind then b.lead end, b.follower or b.head, b.cause, b.gate, b.queue, b.since,
           case when p_takers is not null
                then array(select k.key::bigint from jsonb_array_elements_text(v_limits -> b.id::text) as k (key)) end
      from led b
     order by case when b.behind then b.lead_fresh else b.several and b.fresh end,
              case when b.behind then b.lead_round else b.round end,
              case when b.behind then b.lead_priority else b.priority end, case when b.behind then b.lead_pos else b.pos end,
              b.follower, b.id;
end
$$;
