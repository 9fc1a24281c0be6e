"""The part of a store's protocol that `why` reads. Knows no store."""

from typing import Protocol

from duly.core.job import JobId
from duly.core.why import JobFacts


class FactStore(Protocol):
    """Reads around one job."""

    def facts(self, id: JobId) -> JobFacts | None:
        """One job with what stands around it, all of one moment."""
