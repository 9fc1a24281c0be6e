"""Marks on what a handler does to the world outside, for drills and tests that count how often each happens.

Nothing happens while nobody listens. Knows no drill, no store and no test.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Literal, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from duly.client.job import current

Phase = Literal["called", "begun", "done", "failed"]


class Mark(Struct, frozen=True):
    """One word about one effect."""

    phase: Phase
    """called: `effect(…)` was reached; begun, done, failed: the block was entered, was left, or raised."""
    use: str
    """Which use of `effect` says so, in all processes."""
    name: str
    key: str
    """Two uses with one name and one key are the same effect twice."""
    file: str
    line: int
    function: str
    job: str
    correlation: str
    attempt: int
    idempotency_key: str | None = None


class Ear(Protocol):
    """Who wants to hear of effects."""

    def __call__(self, mark: Mark) -> None: ...


_ears: Final[list[Ear]] = []
_uses: Final = itertools.count(1)


class effect:  # noqa: N801 (used like a function)
    """Mark what must not happen twice: a charge, a mail, a call. Costs next to nothing outside drills and tests.

    As a block around it, or as a plain call right after it::

        with effect("charge", order_id):
            gateway.charge(order_id)

    A block that raises has not had its effect. Writes in a transaction of the handler's own need no mark: look at the
    table with an invariant.

    Args:
        name: what it is, such as "charge".
        key: which one it is, such as the order; the job unless given.
        idempotency_key: where the receiver drops repetitions of one key: the same key again is no second time then,
            and another one is.

    """

    __slots__ = ("_mark",)

    def __init__(self, name: str, key: object = None, *, idempotency_key: object = None) -> None:
        self._mark: Mark | None = None
        if not _ears:
            return
        frame, job = sys._getframe(1), current.get()
        self._mark = Mark(
            phase="called",
            use=f"{os.getpid()}-{next(_uses)}",
            name=name,
            key=str(key) if key is not None else "" if job is None else f"job {job.id}",
            file=frame.f_code.co_filename,
            line=frame.f_lineno,
            function=frame.f_code.co_name,
            job="" if job is None else str(job.id),
            correlation="" if job is None else job.correlation_id,
            attempt=0 if job is None else job.attempt,
            idempotency_key=None if idempotency_key is None else str(idempotency_key),
        )
        _tell(self._mark)

    def __enter__(self) -> Self:
        self._say("begun")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._say("done" if kind is None else "failed")

    def _say(self, phase: Phase) -> None:
        if self._mark is not None:
            _tell(replace(self._mark, phase=phase))


def hear(ear: Ear) -> None:
    """Listen, in this process, from now on."""
    _ears.append(ear)


def forget(ear: Ear) -> None:
    """Listen no more."""
    _ears.remove(ear)


def happened(marks: Iterable[Mark]) -> dict[tuple[str, str], list[Mark]]:
    """What took place, by (name, key): each time in order, of repetitions with one idempotency key the first.

    A block that was entered and never left does not count: who died inside it may have had the effect or not.
    """
    last: dict[str, Mark] = {}
    for mark in marks:
        last[mark.use] = mark
    found: dict[tuple[str, str], list[Mark]] = {}
    for mark in last.values():
        if mark.phase in ("begun", "failed"):
            continue
        times = found.setdefault((mark.name, mark.key), [])
        known = mark.idempotency_key is not None and any(
            one.idempotency_key == mark.idempotency_key for one in times
        )
        if not known:
            times.append(mark)
    return found


def by_name(marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    """The first time of each effect, by its name."""
    found: dict[str, list[Mark]] = {}
    for (name, _), times in happened(marks).items():
        found.setdefault(name, []).append(times[0])
    return found


def too_often(times: Sequence[Mark]) -> str:
    """What to say of an effect that happened more than once."""
    first, often = times[0], "twice" if len(times) == 2 else f"{len(times)} times"
    return f"effect {first.name} happened {often} in {first.function}, line {first.line}"


def too_rarely(usual: Mark) -> str:
    """What to say of an effect that another run of the job had, and this one did not."""
    return f"effect {usual.name} did not happen in {usual.function}, line {usual.line}"


@contextmanager
def heard() -> Iterator[list[Mark]]:
    """The marks of this process while the block lasts."""
    marks: list[Mark] = []

    def ear(mark: Mark) -> None:
        marks.append(mark)

    hear(ear)
    try:
        yield marks
    finally:
        forget(ear)


def _tell(mark: Mark) -> None:
    for ear in tuple(_ears):
        ear(mark)
