"""Every job this incarnation holds, from the claim to the stored end; compared with what the store says it holds.

Changed by the pump's thread; others read.
"""

from collections.abc import Iterable

from duly.core.leases import unknown_twice
from duly.worker.attempt import Attempt, Phase


class Held:
    """By job id: one process never runs one job twice at once."""

    def __init__(self) -> None:
        self._by_id: dict[int, Attempt] = {}
        self._suspected: frozenset[tuple[int, int]] = frozenset()

    @property
    def suspects_anything(self) -> bool:
        """The last comparison found a claim that nobody here knows."""
        return bool(self._suspected)

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, attempt: Attempt) -> bool:
        """False when an older attempt of the same job is still here, running on without its lease."""
        return self._by_id.setdefault(attempt.job.id, attempt) is attempt

    def drop(self, attempt: Attempt) -> None:
        if self._by_id.get(attempt.job.id) is attempt:
            del self._by_id[attempt.job.id]

    def find(self, id: int) -> Attempt | None:
        return self._by_id.get(id)

    def all(self) -> list[Attempt]:
        # dict.values() may change under another thread's feet; list() of it does not run Python code in between.
        return list(self._by_id.values())

    def live(self) -> list[Attempt]:
        """Those whose handlers run, given-up ones included."""
        return [attempt for attempt in self.all() if attempt.phase in {Phase.running, Phase.given_up}]

    def compare(self, stored: Iterable[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[Attempt]]:
        """What the store holds for us and we never heard of, twice in a row; and what we run and it no longer holds."""
        in_store = list(stored)
        known = {attempt.key: attempt for attempt in self.all()}
        self._suspected, strange = unknown_twice(in_store, known, self._suspected)
        there = frozenset(in_store)
        lost = [attempt for key, attempt in known.items() if key not in there and _should_be_stored(attempt)]
        return strange, lost


def _should_be_stored(attempt: Attempt) -> bool:
    """Its claimed row must exist: not acknowledged before the run, not completed by the handler itself."""
    own_end = attempt.committed is not None or attempt.handed_over or attempt.acked_first
    return not own_end and attempt.phase is not Phase.ended and attempt.why != "lease"
