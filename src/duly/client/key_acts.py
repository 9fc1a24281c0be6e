"""Payload keys as a person changes them: everything is encrypted anew with the first one. A part of `operate`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec

from duly.client.authorship import reason_given
from duly.client.control_acts import ControlActs
from duly.client.sealing import Sealing
from duly.client.twins import blocking, twin
from duly.core.durations import parse_rate
from duly.core.envelope import NotOpened, key_of
from duly.core.errors import UsageError
from duly.stores.sealed import PARTS, Part, Resealed, SealedRow

CHUNK: Final = 200
"""Payloads in one transaction."""
RATE: Final = "2000/s"


class Rotation(msgspec.Struct, frozen=True):
    """What encrypting anew has come to."""

    key: str
    """The id of the key that encrypts now."""
    done: int
    """Payloads encrypted anew."""
    current: int
    """That had been encrypted with it before."""
    left: dict[str, int]
    """Former key -> payloads that still need it: they stand in follow-ups, schedules and kept answers."""
    unreadable: dict[str, int]
    """Key -> payloads that could not be read: the process lacks the key, or they were changed."""

    @property
    def droppable(self) -> tuple[str, ...]:
        """Former keys that nothing stored needs any more."""
        return tuple(key for key, number in self.left.items() if not number)


class KeyActs(ControlActs):
    """Base of `Operate`."""

    @blocking
    def rotate_keys(
        self, *, rate: str = RATE, reason: str = "", told: Callable[[int], None] | None = None
    ) -> Rotation:
        """Encrypt every stored payload with the first of DULY_KEYS; what is encrypted with it already stays.

        Goes through the store in small transactions, so fast at most; it may be stopped and begun again at any time.
        Payloads of follow-ups, schedules and kept answers stay under their key, and are counted.

        Args:
            rate: how many payloads are written, as "2000/s".
            reason: why; kept with the act.
            told: called with the number of payloads done after each transaction.

        """
        sealing = self._client.sealing
        keys = sealing.required()
        pace = _Pace(rate)
        work = _Work(sealing)
        for part in PARTS:
            after: tuple[int, str] | None = (0, "")
            while after is not None:
                page = self._client.store.sealed.page(part, after)
                self._reseal(part, work, page.rows, pace, told)
                after = page.after
        elsewhere = {key: self._client.store.sealed.elsewhere(key) for key in keys.ids[1:]}
        left = {key: sum(found.values()) + work.unreadable.get(key, 0) for key, found in elsewhere.items()}
        detail = {"key": keys.first, "payloads": work.done}
        self._client.store.audits.append("rotate_keys", "", self.actor(), reason_given(reason), detail)
        return Rotation(keys.first, work.done, work.current, left, work.unreadable)

    def _reseal(
        self,
        part: Part,
        work: _Work,
        rows: tuple[SealedRow, ...],
        pace: _Pace,
        told: Callable[[int], None] | None,
    ) -> None:
        changes = [change for row in rows if (change := work.changed(part, row)) is not None]
        for start in range(0, len(changes), CHUNK):
            chunk = changes[start : start + CHUNK]
            # Those that are gone, or were written by somebody else, are under the right key or none.
            work.done += self._client.store.sealed.replace(part, chunk)
            if told is not None:
                told(work.done)
            pace.after(len(chunk))

    arotate_keys = twin(rotate_keys)


class _Work:
    """What was seen so far."""

    def __init__(self, sealing: Sealing) -> None:
        self._sealing = sealing
        self._first = sealing.required().first
        self.done = 0
        self.current = 0
        self.unreadable: dict[str, int] = {}

    def changed(self, part: Part, row: SealedRow) -> Resealed | None:
        key = key_of(row.data)
        if key == self._first:
            self.current += 1
            return None
        try:
            new = self._sealing.renewed(part, row)
        except NotOpened:
            self.unreadable[key] = self.unreadable.get(key, 0) + 1
            return None
        return Resealed(row.id, row.name, row.data, new)


class _Pace:
    """Keeps to a rate on average."""

    def __init__(self, rate: str) -> None:
        per_second = parse_rate(rate, "rate")
        if per_second is not None and per_second <= 0:
            raise UsageError(f"rate={rate!r} is none; write '2000/s', or 'max'")
        self._every = 0.0 if per_second is None else 1.0 / per_second
        self._due = time.monotonic()

    def after(self, number: int) -> None:
        self._due = max(self._due, time.monotonic() - 1.0) + number * self._every
        pause = self._due - time.monotonic()
        if pause > 0:
            time.sleep(pause)
