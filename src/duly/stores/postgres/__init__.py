"""The PostgreSQL store: `store.PostgresStore` over one schema of any name. Needs psycopg to be imported."""
