-- Who owns these ordering keys, which the caller has locked in an earlier statement: the job that did so before while it is
-- still in the row of its key, else the first of them. Answers those keys that may go on, and from where on others may follow:
-- none, where a job before the head exists.
-- Lock: the caller's. Index: key_head_pkey, keyed_pkey. Differs: none.
create function {schema}.key_heads_1(p_keys bigint[], p_now timestamptz)
returns table (key bigint, id bigint, first boolean)
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    with heads as materialized (
        select h.tid, h.key, h.id as was, h.paused or coalesce(o.paused, l.paused, false) as paused, coalesce(o.id, l.id) as id,
               l.id as first
          from unnest(p_keys) as u (key)
         cross join lateral (
            select h.ctid as tid, h.key, h.id, h.paused from key_head h where h.key = u.key offset 0) h
          left join lateral (
            select k.id, k.paused from keyed k where k.key = h.key and k.id = h.id offset 0) o on true
          left join lateral (
            select k.id, k.paused from keyed k where k.key = h.key order by k.key, k.id limit 1) l on true
    ), owned as (
        update key_head k set id = h.id, paused = h.paused, since = case when h.id = h.was then k.since else p_now end
          from heads h where k.ctid = h.tid and (k.id, k.paused) is distinct from (h.id, h.paused)
    ), told as (
        update keyed k set paused = false from heads h where h.paused and k.key = h.key and k.id = h.id and k.paused
    )
    select h.key, h.id, h.id = h.first from heads h where not h.paused;
end
$$;
