"""The parts of `make bench-flat`: does duly on PostgreSQL stay as fast as it was? See bench/flat.py."""
