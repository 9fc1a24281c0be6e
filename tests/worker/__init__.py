"""The parts of the worker, each by itself or in this process."""
