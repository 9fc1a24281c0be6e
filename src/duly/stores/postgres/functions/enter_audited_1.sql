-- An audited job was stored: who enqueued it, as its tag says; else whose session it is. Lock: none. Index: job_pkey,
-- audited_pkey. Differs: SQLite knows no session.
create function {schema}.enter_audited_1() returns trigger
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    perform note_act_2('enqueue', 'job:' || new.id, case when new.tag = 'audit' then session_user::text else substr(new.tag, 7) end,
                       coalesce(j.trigger, ''),
                       json_build_object('queue', j.queue, 'task', j.task, 'tenant', j.tenant)::text, j.enqueued_at)
       from job j where j.id = new.id;
    insert into audited (id) values (new.id) on conflict do nothing;
    return null;
end
$$;
