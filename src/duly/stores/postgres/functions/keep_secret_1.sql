-- Keeps a key as the newest of its kind, by whom and why; without them only when there is none yet. Answers all of the kind.
-- Lock: the table, against others that keep one. Index: secret_pkey. Differs: none.
create function {schema}.keep_secret_1(p_kind text, p_value bytea, p_by text, p_reason text, p_now timestamptz)
returns table (kind text, id int, value bytea, created_at timestamptz, retired_at timestamptz)
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    perform require_read_committed_1();
    lock table secret in share row exclusive mode;
    if p_by is not null or not exists (select 1 from secret s where s.kind = p_kind) then
        update secret s set retired_at = v_now where s.kind = p_kind and s.retired_at is null;
        insert into secret (kind, id, value, created_at)
        select p_kind, coalesce(max(s.id), 0) + 1, p_value, v_now from secret s where s.kind = p_kind;
        if p_by is not null then
            perform note_act_2('rotate', 'secret:' || p_kind, p_by, p_reason, '{}', v_now);
        end if;
    end if;
    return query select s.kind, s.id, s.value, s.created_at, s.retired_at from secrets_1(p_kind) s;
end
$$;
