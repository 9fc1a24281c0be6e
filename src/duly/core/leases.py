"""Lease arithmetic: when a watched worker may be reaped, and when a holder must consider its own lease over.

Pure: monotonic seconds are passed in. The store's row is the lease; time only decides when the row may be deleted.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .job import Incarnation


class Beat(NamedTuple):
    """One worker row as read: its heartbeat counter, its lease in seconds and the age of its last beat."""

    incarnation: Incarnation
    beat: int
    lease: float
    age: float
    """By the database's clock, in seconds."""


class Watch:
    """What one reaper has seen. A worker is overdue only after this watch itself saw the same beat for a whole lease,
    with no failed or blocked round of its own in between, or when its last beat is ten leases old.

    Wall-clock leases would lapse a whole fleet after an outage, a failover or a clock step.
    """

    def __init__(self) -> None:
        self._seen: dict[Incarnation, tuple[int, float]] = {}
        self._last_round: float | None = None

    def interrupted(self) -> None:
        """A round of the reaper failed: what was seen before proves nothing."""
        self._seen.clear()
        self._last_round = None

    def overdue(self, beats: Iterable[Beat], now: float, most_gap: float) -> list[Beat]:
        """The workers that may be reaped. `now` is monotonic; a gap over `most_gap` since the last round
        starts anew."""
        if self._last_round is not None and now - self._last_round > most_gap:
            self._seen.clear()
        self._last_round = now
        lapsed: list[Beat] = []
        seen: dict[Incarnation, tuple[int, float]] = {}
        for row in beats:
            beat, since = self._seen.get(row.incarnation, (row.beat, now))
            if beat != row.beat:
                beat, since = row.beat, now
            seen[row.incarnation] = (beat, since)
            if now - since >= row.lease or row.age >= 10 * row.lease:
                lapsed.append(row)
        self._seen = seen
        return lapsed


class OwnLease:
    """The holder's view: counted from before each heartbeat was sent, so that it always ends first."""

    def __init__(self, lease: float, heartbeat: float, now: float) -> None:
        self._lease = lease
        self._heartbeat = heartbeat
        self._renewed = now

    def renewed(self, sent_at: float) -> None:
        """A heartbeat sent at `sent_at` (monotonic, boot time) was confirmed."""
        self._renewed = max(self._renewed, sent_at)

    def must_stop(self, now: float) -> bool:
        """True from one heartbeat before the lease can lapse: end the handlers now."""
        return now >= self._renewed + self._lease - self._heartbeat

    def may_claim(self, now: float) -> bool:
        """False as soon as two beats in a row were missed."""
        return (
            now
            < self._renewed + min(2 * self._heartbeat, self._lease - self._heartbeat) + self._heartbeat / 2
        )


def unknown_twice(
    held: Iterable[tuple[int, int]],
    known: Mapping[tuple[int, int], object],
    suspected: frozenset[tuple[int, int]],
) -> tuple[frozenset[tuple[int, int]], list[tuple[int, int]]]:
    """Compare what the store says we hold with memory: (suspected now, unknown in two rounds running).

    Two rounds, because the backend whose reply was lost may still be committing.
    """
    strange = frozenset(pair for pair in held if pair not in known)
    return strange, sorted(strange & suspected)
