-- Takes a unique key for a job whose number of claims so far is p_run. holder: the job that has the key, NULL when it was
-- taken. replaced: the waiting job that lost it to p_replace, locked; the caller ends it. p_fresh are jobs of the same call,
-- whose rows are still to come. A key whose job has ended, has expired or (scope queued) was claimed is free.
-- Lock: the key's row when it is taken; with p_lock the waiting holder FOR KEY SHARE, so that it runs after our commit and
-- sees our data. Another transaction's uncommitted key is waited for. Index: unique_key_pkey and the tables' id indexes.
-- Differs: SQLite has one writer.
create function {schema}.take_unique_1(
    p_key bytea, p_id bigint, p_run int, p_live boolean, p_replace boolean, p_fresh bigint[], p_lock boolean,
    p_now timestamptz, out holder bigint, out replaced bigint)
language plpgsql as $$
declare
    v_had record;
    v_place int;
    v_taken boolean;
begin
    loop
        holder := null;
        replaced := null;
        insert into unique_key (key, id, run, live) values (p_key, p_id, p_run, p_live) on conflict (key) do nothing;
        if found then
            return;
        end if;
        select k.id, k.run, k.live into v_had from unique_key k where k.key = p_key;
        continue when not found;
        if v_had.id = any(p_fresh) then
            v_place := 0;
            v_taken := true;
        else
            select x.place, v_had.id <> p_id and (v_had.live or x.place < 4 and x.run = v_had.run)
                   and (x.expires_at <= p_now) is not true
              into v_place, v_taken
              from (select 1 as place, r.run, r.expires_at from ready r where r.id = v_had.id
                     union all
                    select 2, s.run, s.expires_at from scheduled s where s.id = v_had.id
                     union all
                    select 3, b.run, b.expires_at from blocked b where b.id = v_had.id
                     union all
                    select 4, c.run, null from claimed c where c.id = v_had.id) x;
        end if;
        if v_taken and not (p_replace and v_place < 4) then
            if p_lock and v_place between 1 and 3 then
                -- Gone meanwhile: look again where it is now.
                continue when not hold_waiting_1(v_had.id, v_place, false);
            end if;
            holder := v_had.id;
            return;
        end if;
        if v_taken then
            if v_place > 0 then
                continue when not hold_waiting_1(v_had.id, v_place, true);
            end if;
            replaced := v_had.id;
        end if;
        update unique_key k set id = p_id, run = p_run, live = p_live where k.key = p_key and k.id = v_had.id;
        if found then
            return;
        end if;
    end loop;
end
$$;
