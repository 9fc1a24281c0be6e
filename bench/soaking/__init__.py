"""The parts of `make soak`: producers that do not wait, workers as a user runs them, a ledger. See bench/soak.py."""
