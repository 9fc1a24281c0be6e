"""The command line: it parses, calls `inspect`, `operate` and the worker, and prints. It holds no logic and no SQL."""
