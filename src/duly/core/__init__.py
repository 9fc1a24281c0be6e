"""Pure rules: no I/O, no clock, no randomness, no event loop, no logging. Imports nothing of ours outside core."""
