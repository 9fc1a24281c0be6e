"""Tests of what only one store does; what all of them promise is in tests.conformance."""
