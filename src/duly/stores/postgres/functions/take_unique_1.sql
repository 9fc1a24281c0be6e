-- Takes a unique key for a job whose number of claims so far is p_run. holder: the job that has the key, NULL when it was
-- taken. replaced: the waiting job that lost it to p_replace or to a newer version, locked; the caller ends it. p_fresh are jobs
-- of the same call, whose rows are still to come, with their versions. A key whose job has ended, has expired or (scope queued) was claimed is free.
-- Lock: the key's row when it is taken; with p_lock the waiting holder FOR KEY SHARE, so that it runs after our commit and
-- sees our data. Another transaction's uncommitted key is waited for. Index: unique_key_pkey and the tables' id indexes.
-- Differs: SQLite has one writer.
create function {schema}.take_unique_1(
    p_key bytea, p_id bigint, p_run int, p_live boolean, p_replace boolean, p_version bigint, p_fresh bigint[],
    p_versions bigint[], p_lock boolean, p_now timestamptz, out holder bigint, out replaced bigint)
language plpgsql as $$
declare
    v_had record;
    v_at record;
    v_replace boolean;
    v_theirs bigint;
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
            select 0 as place, true as taken into v_at;
        else
            v_at := key_holder_1(v_had.id, v_had.run, v_had.live, p_now);
        end if;
        v_replace := p_replace;
        if p_version is not null then
            if v_had.id = any(p_fresh) then
                v_theirs := p_versions[array_position(p_fresh, v_had.id)];
            else
                v_theirs := (select j.version from job j where j.id = v_had.id);
            end if;
            -- The newer of two versions stays.
            v_replace := case when v_theirs is null or v_theirs = p_version then p_replace else p_version > v_theirs end;
        end if;
        if v_at.taken and not (v_replace and v_at.place < 4) then
            -- Gone meanwhile: look again where it is now.
            continue when p_lock and v_at.place between 1 and 3 and not hold_waiting_1(v_had.id, v_at.place, false);
            holder := v_had.id;
            return;
        end if;
        if v_at.taken then
            continue when v_at.place > 0 and not hold_waiting_1(v_had.id, v_at.place, true);
            replaced := v_had.id;
        else
            -- A redrive may just be taking the key for its holder again: with the key locked, look once more.
            perform 1 from unique_key k where k.key = p_key and k.id = v_had.id for update;
            continue when not found;
            v_at := key_holder_1(v_had.id, v_had.run, v_had.live, p_now);
            continue when v_at.taken;
        end if;
        update unique_key k set id = p_id, run = p_run, live = p_live where k.key = p_key and k.id = v_had.id;
        if found then
            return;
        end if;
    end loop;
end
$$;
