"""Glue for web frameworks, and nothing else: one module per framework, imported by who uses it."""
