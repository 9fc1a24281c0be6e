"""Callers' connections of every kind, on real servers and files."""
