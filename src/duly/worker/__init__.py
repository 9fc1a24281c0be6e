"""The worker: processes that claim, run and acknowledge jobs; one file per duty."""
