"""A database that is further away: the delaying proxy of bench/remote.py."""
