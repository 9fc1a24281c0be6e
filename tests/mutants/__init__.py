"""Deliberately broken transitions, fences and orders, and the hunt that must catch each. Run: make mutants."""
