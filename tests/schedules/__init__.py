"""Schedules and ticks: declared, fired, edited, and read."""
