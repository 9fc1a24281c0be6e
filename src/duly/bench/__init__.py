"""Measures somebody's own database in a scratch place beside their jobs, and says what bounds it."""
