"""The deterministic simulation: virtual time, a seeded order of events, the real parts of the worker, a real store.

python -m tests.simulation SEED [STORE]      replays one seed and prints what happened
"""
