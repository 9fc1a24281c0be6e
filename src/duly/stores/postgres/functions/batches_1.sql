-- Batches by id, or those before one, the newest first, with what was counted of them and not folded yet.
-- Lock: none. Index: batch_pkey, batch_done_pkey. Differs: SQLite keeps the counts in the row.
create function {schema}.batches_1(p_ids bigint[], p_before bigint, p_most int)
returns table (
    id bigint, name text, state text, parent bigint, total bigint, completed bigint, skipped bigint, cancelled bigint,
    shed bigint, dead bigint, created_at timestamptz, closed_at timestamptz, finished_at timestamptz, reason text
)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select b.id, b.name, b.state, b.parent, b.total + d.total, b.completed + d.completed, b.skipped + d.skipped,
           b.cancelled + d.cancelled, b.shed + d.shed, b.dead + d.dead, b.created_at, b.closed_at, b.finished_at, b.reason
      from (
        select b.* from unnest(p_ids) as u (id) join batch b on b.id = u.id
         union all
        (select b.* from batch b where p_ids is null and b.id < coalesce(p_before, 9223372036854775807)
          order by b.id desc limit p_most)) b
     cross join lateral (
        select coalesce(sum(d.total), 0)::bigint as total, coalesce(sum(d.completed), 0)::bigint as completed,
               coalesce(sum(d.skipped), 0)::bigint as skipped, coalesce(sum(d.cancelled), 0)::bigint as cancelled,
               coalesce(sum(d.shed), 0)::bigint as shed, coalesce(sum(d.dead), 0)::bigint as dead
          from batch_done d where d.batch = b.id) d
     order by b.id desc
$$;
