-- The name of the policy that a limit is an instance of. Lock: none. Index: none. Differs: SQLite's is Python.
create function {schema}.policy_of_1(p_name text) returns text
language sql immutable parallel safe as $$
    select coalesce(substring(p_name from '^(task:[^#]*#[^=#]*)='), substring(p_name from '^(tenant:[^=]+)='), p_name)
$$;
