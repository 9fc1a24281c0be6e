"""The part of a store's protocol that `why` and the dead-letter breakers read. Knows no store."""

from datetime import datetime
from typing import Protocol

from duly.core.dead_breaker import Outcomes
from duly.core.job import JobId
from duly.core.why import JobFacts


class FactStore(Protocol):
    """Reads around one job."""

    def facts(self, id: JobId) -> JobFacts | None:
        """One job with what stands around it, all of one moment."""

    def outcomes(self, queue: str, since: datetime, least: int, share: float) -> Outcomes:
        """How jobs of the queue ended since then, or since the last override of `core.dead_breaker.AUTHOR` on the queue
        was lifted: dead ones up to 10,000, completed ones up to `least` or as many as make the dead ones the share."""
