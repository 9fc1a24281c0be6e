-- A follow-up as it is enqueued: its parent's result (null where there is none) in the place of the mark U+0001, its parent's
-- correlation id unless it has its own, and its parent's batch while that takes jobs. A batch has followers, too, and none
-- of these. Lock: none. Index: finished_pkey, result_pkey, job_pkey, batch_pkey.
-- Differs: SQLite's is Python.
create function {schema}.follow_spec_2(p_id bigint, p_spec jsonb) returns jsonb
language plpgsql stable as $$
declare
    v_result bytea := coalesce((select f.result from finished f where f.id = p_id),
                               (select r.result from result r where r.id = p_id));
begin
    return jsonb_build_object('correlation_id', (select coalesce(j.correlation_id, j.id::text) from job j where j.id = p_id))
        || p_spec
        || jsonb_build_object('args', replace(p_spec ->> 'args', E'\x01', coalesce(convert_from(v_result, 'UTF8'), 'null')))
        || coalesce((select jsonb_build_object('batch', b.id) from job j join batch b on b.id = j.batch
                      where j.id = p_id and b.state in ('open', 'running', 'dead')), '{}');
end
$$;
