"""The heartbeat and its other side, the fence: renew leases in time, and stop in time when they were not renewed.

The heart beats in a thread of the supervisor, one statement for all its children; an embedded worker has one of its
own. The fence reads only shared memory and a clock. Knows no handlers.
"""

import random
import threading
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from duly.core.job import Incarnation
from duly.core.leases import OwnLease
from duly.stores.faults import Transient
from duly.stores.protocol import LeaseStore, OperatorStore
from duly.telemetry.events import DutyFailed, StoreAway, StoreBack
from duly.telemetry.hub import Hub
from duly.worker.board import Board, boottime

_RETRY: Final = 0.2
_BLOCKED: Final = 0.5
_BRIDGED_LEASES: Final = 8


class Patient(Protocol):
    """One incarnation under a heart's care."""

    def renewed(self, sent_at: float) -> None: ...

    def gone(self) -> None:
        """The store has no row of it any more."""

    def drain(self) -> None:
        """An operator wants it to stop claiming."""


class BoardPatient:
    """Tells a child by its board."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def renewed(self, sent_at: float) -> None:
        self._board.renew(sent_at)

    def gone(self) -> None:
        self._board.mark_gone()

    def drain(self) -> None:
        self._board.mark_draining()


class Heart:
    """Beats every `every` seconds for whoever was added. After a fault it tries again sooner, with jitter."""

    def __init__(
        self,
        leases: LeaseStore,
        operator: OperatorStore,
        every: float,
        hub: Hub,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._leases = leases
        self._operator = operator
        self._every = every
        self._hub = hub
        self._clock = clock
        self._lock = threading.Lock()
        self._patients: dict[Incarnation, Patient] = {}
        self._wake = threading.Event()
        self._stopping = False
        self._away_since: float | None = None
        self._in_flight: tuple[float, dict[Incarnation, Patient]] | None = None
        self._thread = threading.Thread(target=self._run, name="duly-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._every + 5)

    def add(self, incarnation: Incarnation, patient: Patient) -> None:
        with self._lock:
            self._patients[incarnation] = patient
        self._wake.set()

    def remove(self, incarnation: Incarnation) -> None:
        """Beat no more for it: it ended, or it hangs and must not keep its lease."""
        with self._lock:
            self._patients.pop(incarnation, None)

    def beat(self) -> float:
        """One round; the seconds until the next."""
        with self._lock:
            patients = dict(self._patients)
        if not patients:
            return self._every
        sent_at = self._clock()
        self._in_flight = (sent_at, patients)
        try:
            alive = self._leases.beat(list(patients))
            draining = self._operator.draining(list(patients))
        except Transient as fault:
            self._away(sent_at, fault)
            return min(self._every, _RETRY) * random.uniform(0.5, 1.5)
        finally:
            self._in_flight = None
        self._answered(sent_at)
        _tell(patients, alive, draining, sent_at)
        return self._every - min(self._every / 2, self._clock() - sent_at)

    def bridge(self, lease: float) -> None:
        """For a store whose writers queue for one lock: a beat that waits for it keeps the leases meanwhile.

        Whoever holds the lock keeps every reaper out, too, and a reaper whose own write was held up starts its watch
        anew (see `Rescue`). Bounded, since a row that is ten leases old is reaped by whoever comes.
        """
        flight, now = self._in_flight, self._clock()
        if flight is None or not _BLOCKED < now - flight[0] < _BRIDGED_LEASES * lease:
            return
        for patient in flight[1].values():
            patient.renewed(now)

    def _run(self) -> None:
        while not self._stopping:
            try:
                pause = self.beat()
            except Exception as failure:
                # A heart that dies loses every lease: it reports and goes on.
                self._hub.emit(DutyFailed("heartbeat", f"{type(failure).__name__}: {failure}"))
                pause = _RETRY
            self._wake.wait(pause)
            self._wake.clear()

    def _away(self, now: float, fault: Transient) -> None:
        if self._away_since is None:
            self._away_since = now
            self._hub.emit(StoreAway("heartbeat", str(fault)))

    def _answered(self, now: float) -> None:
        if self._away_since is not None:
            self._hub.emit(StoreBack("heartbeat", now - self._away_since))
            self._away_since = None


def _tell(
    patients: dict[Incarnation, Patient],
    alive: Iterable[Incarnation],
    draining: Iterable[Incarnation],
    sent_at: float,
) -> None:
    living, leaving = frozenset(alive), frozenset(draining)
    for incarnation, patient in patients.items():
        if incarnation not in living:
            patient.gone()
            continue
        patient.renewed(sent_at)
        if incarnation in leaving:
            patient.drain()


class Fence:
    """A process's view of its own lease, read from shared memory; the supervisor need not be alive for it.

    Refreshed by the watch about ten times a second and asked before every start, so that a process that was stopped
    for longer than its lease notices before it starts or acknowledges anything.
    """

    def __init__(self, lease: float, heartbeat: float, board: Board, registered_at: float) -> None:
        self.lease = lease
        self._heartbeat = heartbeat
        self._board = board
        self._own = OwnLease(lease, heartbeat, registered_at)
        self.stop_at = registered_at + lease - heartbeat
        """From this moment on no handler may run; moved on by `refresh`."""
        self.gone = False

    def refresh(self, now: float) -> bool:
        """Look at the board again. False: end the handlers now."""
        pulse = self._board.pulse()
        self.gone = pulse.gone
        self._own.renewed(pulse.renewed_at)
        self.stop_at = max(self.stop_at, pulse.renewed_at + self.lease - self._heartbeat)
        return not (self.gone or self._own.must_stop(now))

    def may_start(self, now: float) -> bool:
        """Cheap; looks at the board only when the lease seems to be over."""
        return not self.gone and (now < self.stop_at or self.refresh(now))

    def may_claim(self, now: float) -> bool:
        return not self.gone and self._own.may_claim(now)

    def lapsed(self, now: float) -> bool:
        """The lease itself may be over: nothing of it may be used any more."""
        return self.gone or now >= self.stop_at + self._heartbeat
