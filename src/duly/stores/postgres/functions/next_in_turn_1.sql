-- Who goes on of those that wait behind a limit, which the caller has locked: their tenants in turn after p_turn, by priority
-- and position in each; those of no tenant take their turn as one. `turn` is whose was the last.
-- Lock: the blocked rows FOR UPDATE SKIP LOCKED. Index: blocked_gate, two probes where one tenant waits, else one for each
-- tenant that goes on. Differs: none.
create function {schema}.next_in_turn_1(p_gate bigint, p_turn bigint, p_most int, out ids bigint[], out turn bigint)
language plpgsql as $$
declare
    v_tenants bigint[];
    v_picked bigint[];
    v_whose bigint[];
    v_left int := p_most;
    v_share int;
begin
    ids := '{}';
    turn := p_turn;
    select array[f.tenant, l.tenant] into v_tenants
      from (select b.tenant from blocked b where b.gate = p_gate order by b.gate, b.tenant limit 1) f
     cross join (select b.tenant from blocked b where b.gate = p_gate order by b.gate desc, b.tenant desc limit 1) l;
    if v_tenants[1] = v_tenants[2] then
        ids := array(
            select b.id from blocked b where b.gate = p_gate
             order by b.gate, b.tenant, b.priority, b.pos limit p_most for update skip locked);
        return;
    end if;
    with recursive later as (
        (select b.tenant from blocked b where b.gate = p_gate and b.tenant > p_turn order by b.gate, b.tenant limit 1)
         union all
        select (select b.tenant from blocked b where b.gate = p_gate and b.tenant > l.tenant order by b.gate, b.tenant limit 1)
          from later l where l.tenant is not null
    ), sooner as (
        (select b.tenant from blocked b where b.gate = p_gate and b.tenant <= p_turn order by b.gate, b.tenant limit 1)
         union all
        select (select b.tenant from blocked b where b.gate = p_gate and b.tenant > s.tenant and b.tenant <= p_turn
                 order by b.gate, b.tenant limit 1)
          from sooner s where s.tenant is not null
    ), first as materialized (
        select l.tenant from later l where l.tenant is not null limit p_most
    )
    select array(select f.tenant from first f)
           || array(select s.tenant from sooner s where s.tenant is not null limit p_most - (select count(*) from first f))
      into v_tenants;
    while v_left > 0 and v_tenants <> '{}' loop
        v_share := ceil(v_left::numeric / cardinality(v_tenants));
        with picked as materialized (
            select x.id, x.priority, x.pos, t.tenant, t.place
              from unnest(v_tenants) with ordinality as t (tenant, place)
             cross join lateral (
                select b.id, b.priority, b.pos from blocked b
                 where b.gate = p_gate and b.tenant = t.tenant and b.id <> all(ids)
                 order by b.gate, b.tenant, b.priority, b.pos limit v_share for update skip locked) x
        ), ranked as (
            select p.id, p.tenant, p.place, row_number() over (partition by p.place order by p.priority, p.pos) as round
              from picked p
        ), next as (
            select r.id, r.tenant, r.round, r.place from ranked r order by r.round, r.place limit v_left
        )
        select array_agg(n.id order by n.round, n.place), array_agg(n.tenant order by n.round, n.place),
               array(select r.tenant from ranked r where r.round = v_share order by r.place)
          into v_picked, v_whose, v_tenants from next n;
        exit when v_picked is null;
        ids := ids || v_picked;
        turn := v_whose[cardinality(v_whose)];
        v_left := v_left - cardinality(v_picked);
    end loop;
end
$$;
