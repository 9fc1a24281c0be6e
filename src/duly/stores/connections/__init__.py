"""Connections that callers hand in: one module per kind, imported when one of that kind is met."""
