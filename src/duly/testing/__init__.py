"""What users import into their own tests. Knows the stores' protocols, never a concrete store."""

from .clock import FakeClock

__all__ = ["FakeClock"]
