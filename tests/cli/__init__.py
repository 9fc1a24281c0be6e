"""Tests of the command line: what it prints, what it refuses, and its exit codes, over a real SQLite file."""
