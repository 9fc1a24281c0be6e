-- The declared queues that go round their tenants. Lock: none. A row per name.
select name from {prefix}_queue where fair = 1
