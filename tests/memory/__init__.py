"""The store inside one process: the promises, the bound, and who cannot reach it."""
