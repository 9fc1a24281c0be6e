"""Tests of what only the PostgreSQL store does its own way: plans, races, connections, roles, the bell."""
