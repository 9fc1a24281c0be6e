"""The parts of `make bench-control`: what do keys, tenants, limits and depths cost? See bench/control.py."""
