-- Whose jobs wait behind a limit, in turn. Lock: the write lock, taken before. Index: gate, one probe a tenant.
with recursive
later (tenant) as (
    select min(tenant) from {prefix}_blocked where gate = :gate and gate <> 0 and tenant > :turn
    union all
    select (select min(b.tenant) from {prefix}_blocked as b where b.gate = :gate and b.gate <> 0 and b.tenant > later.tenant)
    from later
    where tenant is not null
    limit :most
),
sooner (tenant) as (
    select min(tenant) from {prefix}_blocked where gate = :gate and gate <> 0 and tenant <= :turn
    union all
    select (
        select min(b.tenant) from {prefix}_blocked as b
        where b.gate = :gate and b.gate <> 0 and b.tenant > sooner.tenant and b.tenant <= :turn
    )
    from sooner
    where tenant is not null
    limit :most
)
select tenant from later where tenant is not null
union all
select tenant from sooner where tenant is not null
limit :most
