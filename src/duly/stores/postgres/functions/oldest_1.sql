-- Where the p_most oldest jobs of a lane stand: how many heads of each of its priorities, at most 64 of them, as segments for a
-- scan. NULL where all are of one priority. p_from, p_pos and p_to jump over dead entries.
-- Lock: none. Index: ready_pkey, a probe a priority. Differs: none.
create function {schema}.oldest_1(
    p_lane bigint, p_tenant bigint, p_most int, p_from int[], p_pos bigint[], p_to bigint[],
    out low int[], out pos bigint[], out high bigint[], out most int[])
language plpgsql stable as $$
declare
    v_low int;
    v_found int;
    v_start bigint;
begin
    low := '{}';
    pos := '{}';
    for v_segment in 1 .. cardinality(p_from) loop
        v_low := p_from[v_segment];
        v_start := p_pos[v_segment];
        loop
            select r.priority into v_found from ready r
             where r.queue = p_lane and r.tenant = p_tenant and (r.priority, r.pos) > (v_low, v_start)
               and r.priority < p_to[v_segment]
             order by r.priority, r.pos limit 1;
            exit when not found or cardinality(low) >= 64;
            low := low || v_found;
            pos := pos || case when v_found = p_from[v_segment] then p_pos[v_segment] else -1 end;
            v_low := v_found;
            v_start := 9223372036854775807;
        end loop;
    end loop;
    if cardinality(low) < 2 then
        low := null;
        return;
    end if;
    select array_agg(g.low), array_agg(g.pos), array_agg(g.low + 1::bigint), array_agg(g.most) into low, pos, high, most
      from (select h.low, h.pos, count(*)::int as most
              from (select s.low, s.pos, x.pos as at from unnest(low, pos) as s (low, pos) cross join lateral (
                        select r.pos from ready r
                         where r.queue = p_lane and r.tenant = p_tenant and r.priority = s.low and r.pos > s.pos
                         order by r.priority, r.pos limit p_most) x
                     order by x.pos limit p_most) h
             group by h.low, h.pos order by h.low) g;
end
$$;
