"""A store that says what is asked of it, before and after: how a test sees enqueues, and how a process dies midway.

Passes every call on unchanged. Knows no store and no test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, Protocol, cast

from duly.core.job import JobId, Stored
from duly.stores.faults import Transient
from duly.stores.protocol import Store

_PARTS: Final = (
    "jobs",
    "keys",
    "steps",
    "schedules",
    "leases",
    "upkeep",
    "inspection",
    "operator",
    "schema",
)
_ENQUEUES: Final = {"jobs.enqueue", "enqueue_on", "aenqueue_on"}


class Killed(BaseException):
    """The process that called is dead. Not an Exception: no handler of errors may go on after it."""


class Ear(Protocol):
    """Who listens."""

    def before(self, call: str) -> None:
        """May raise Killed: the call is not made."""

    def after(self, call: str, answer: object) -> None:
        """May raise Killed: the call was made and its answer is not heard."""


class Tapped:
    """What was heard so far."""

    def __init__(self) -> None:
        self.ids: list[JobId] = []
        """Jobs stored, committed or not, in order."""
        self.fault: Transient | None = None
        """The last time the store did not answer."""
        self.ears: list[Ear] = []
        self.on_stored: Callable[[], None] = _nobody
        """After an enqueue in a transaction of the store's own."""

    def forget_listener(self) -> None:
        self.on_stored = _nobody

    def tap(self, store: Store) -> Store:
        """The same store, heard."""
        return cast(Store, _TappedStore(store, self))

    def call(self, name: str, act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        for ear in self.ears:
            ear.before(name)
        try:
            answer = act(*args, **kwargs)
        except Transient as fault:
            self.fault = fault
            raise
        self.heard(name, answer)
        return answer

    def heard(self, name: str, answer: object) -> None:
        if name in _ENQUEUES and isinstance(answer, Sequence):
            self.ids.extend(stored.id for stored in answer if isinstance(stored, Stored))
        for ear in self.ears:
            ear.after(name, answer)
        if name == "jobs.enqueue":
            self.on_stored()


class _TappedStore:
    def __init__(self, store: Store, tapped: Tapped) -> None:
        self._store = store
        self._tapped = tapped
        for part in _PARTS:
            if hasattr(store, part):
                setattr(self, part, _TappedPart(part, getattr(store, part), tapped))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not name.endswith("_on"):
            return found
        return _listened(self._tapped, name, found)


class _TappedPart:
    def __init__(self, part: str, real: Any, tapped: Tapped) -> None:
        self._part = part
        self._real = real
        self._tapped = tapped

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found):
            return found
        made = _listened(self._tapped, f"{self._part}.{name}", found)
        setattr(self, name, made)
        return made


def _listened(tapped: Tapped, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(act):

        @wraps(act)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            for ear in tapped.ears:
                ear.before(name)
            answer = await act(*args, **kwargs)
            tapped.heard(name, answer)
            return answer

        return awaited

    @wraps(act)
    def called(*args: Any, **kwargs: Any) -> Any:
        return tapped.call(name, act, *args, **kwargs)

    return called


def _nobody() -> None:
    pass
