-- Takes an idempotency key for a job, for 30 days. outcome: created (the key is the job's), duplicate (id is the job that
-- has it), reused (the same, but for other arguments).
-- Lock: none on a key that is taken; another transaction's uncommitted key is waited for. Index: idempotency_pkey, job_pkey.
-- Differs: SQLite has one writer.
create function {schema}.take_idempotency_1(
    p_key bytea, p_id bigint, p_args bytea, p_now timestamptz, out id bigint, out outcome text)
language plpgsql as $$
#variable_conflict use_column
declare
    v_hash bytea := substr(sha256(p_args), 1, 16);
    v_until timestamptz := p_now + interval '30 days';
    v_had record;
begin
    loop
        take_idempotency_1.id := p_id;
        outcome := 'created';
        insert into idempotency (key, id, args_hash, until) values (p_key, p_id, v_hash, v_until)
            on conflict (key) do nothing;
        if found then
            return;
        end if;
        -- A statement of its own: the key may have been committed after the snapshot of the last one.
        select i.id, i.args_hash, i.until into v_had from idempotency i where i.key = p_key;
        continue when not found;
        if v_had.until <= p_now then
            update idempotency i set id = p_id, args_hash = v_hash, until = v_until, status = null, ended_at = null,
                   result = null, reason = null
             where i.key = p_key and i.until <= p_now;
            continue when not found;
            return;
        end if;
        take_idempotency_1.id := v_had.id;
        -- The arguments asked for are the job's own, unless a unique key answered the request with another job.
        outcome := case when v_had.args_hash = v_hash
                          or (select same_arguments_1(j.args, p_args) from job j
                               where j.id = v_had.id and substr(sha256(j.args), 1, 16) = v_had.args_hash) then 'duplicate'
                        else 'reused' end;
        return;
    end loop;
end
$$;
