"""The PostgreSQL store: `store.PostgresStore` over one schema of any name. Import this package only with psycopg there."""
