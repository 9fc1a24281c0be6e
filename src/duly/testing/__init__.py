"""What users import into their own tests. Knows the stores' protocols, never a concrete store."""

from duly.client.effects import effect

from .clock import FakeClock
from .jobs import job
from .kit import DulyTest, standing
from .performing import Drained, Ran
from .waiting import WaitingJob

__all__ = ["Drained", "DulyTest", "FakeClock", "Ran", "WaitingJob", "effect", "job", "standing"]
