-- A sample for the rates that `status` shows, as keep_sample_1, but less often, down to one a minute, where counting all that
-- waits takes more than a tenth of a second: a hundredth of one backend's time is enough for it.
-- Lock: none (the sweep's turn). Index: sweep_pkey and those of keep_sample_1. Differs: PostgreSQL only.
create function {schema}.keep_sample_2(p_now timestamptz) returns void
language plpgsql as $$
declare
    v_began timestamptz := clock_timestamp();
begin
    if exists (select 1 from sweep s where s.name = 'sample' and s.last_at <= p_now
                  and s.last_at > p_now - greatest(interval '10 seconds', least(100 * s.cost, interval '1 minute'))) then
        return;
    end if;
    perform keep_sample_1(p_now);
    update sweep set cost = clock_timestamp() - v_began where name = 'sample';
end
$$;
