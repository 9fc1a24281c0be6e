-- The batches inside one that are not cancelled. Lock: none. Index: batch_parent. Differs: none.
create function {schema}.inside_batch_1(p_id bigint) returns setof bigint
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select b.id from batch b where b.parent = p_id and b.state <> 'cancelled'
$$;
