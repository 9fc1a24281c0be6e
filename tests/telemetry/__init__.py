"""The events of a worker and their log lines."""
