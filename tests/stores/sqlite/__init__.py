"""Quirks of SQLite that the conformance suite cannot know: journals, locks, forks, callers' connections, damage."""
