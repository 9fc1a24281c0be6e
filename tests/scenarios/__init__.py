"""Failure stories of job queues, each shown not to happen here; index.toml says which tests show which story."""
