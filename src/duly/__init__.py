"""duly: durable background jobs on the SQLite or PostgreSQL a team already runs."""
