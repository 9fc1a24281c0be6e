"""The store inside one process: `memory://`."""
