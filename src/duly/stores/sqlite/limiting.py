"""Limits at a claim: all that a job takes, or none. Runs inside an open transaction; writes at its end.

A job that waits too long for several reserves them, in the order of their keys, as far as they are free.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from duly.core.control import PATIENCE
from duly.stores.sqlite.bounds import Bound, Bounds, Take
from duly.stores.sqlite.ordering import ARGS, SINCE, TASK
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import span
from duly.stores.sqlite.usage import Use, keep, uses_of

_LONGEST: Final = 200
_ARGUMENTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])

Arguments = Callable[[Row], bytes]


class Wait(NamedTuple):
    """What a job waits behind, and until when where that is known."""

    gate: int
    at: int | None


class Limits:
    """The limits that one claim meets."""

    def __init__(self, session: Session, incarnation: int, bounds: Bounds, arguments: Arguments) -> None:
        self._session = session
        self._incarnation = incarnation
        self.bounds = bounds
        self._arguments = arguments
        self._uses: dict[str, Use] = {}
        self._holds: list[Row] = []

    def of(self, named: Sequence[tuple[str, Bound]]) -> list[Use]:
        """Instances, each with what bounds it, as they stand with what this claim has taken."""
        missing = [(name, bound) for name, bound in named if name not in self._uses]
        for use in uses_of(self._session, missing) if missing else ():
            self._uses[use.name] = use
        return [self._uses[name] for name, _ in named]

    def take(self, row: Row) -> Wait | None:
        """All limits of the job; else nothing, and what it waits behind."""
        now = self._session.now
        named = [(name, self.bounds.of(name, now)) for name in self.names(row)]
        uses = sorted(self.of(named), key=lambda use: use.key)
        waits_since: int | None = row[SINCE]
        reserved = self._reserved(row[0]) if waits_since is not None else frozenset[int]()
        for use in uses:
            refusal = use.refusal(now, reserved=use.key in reserved)
            if refusal is not None:
                if waits_since is not None and now - waits_since >= span(PATIENCE) and len(uses) > 1:
                    self._reserve(row[0], uses, reserved)
                self._look_at(use, refusal.at)
                return Wait(use.key, refusal.at)
        for use in uses:
            self.start(use, row[0], reserved=use.key in reserved)
        self._let_go(row[0], reserved - {use.key for use in uses if use.counts})
        return None

    def start(self, use: Use, id: int, *, reserved: bool = False, counted: bool = False) -> None:
        """A job takes one limit; `counted`: as a hold, whatever bounds the limit."""
        use.start(self._session.now, reserved=reserved)
        if use.counts or counted:
            self._holds.append((use.key, id, self._incarnation, None))

    def write(self) -> None:
        """Keep what was taken."""
        self._session.tuples("insert_hold", self._holds)
        self._holds.clear()
        keep(self._session, self._uses.values())

    def drop(self, ids: set[int]) -> None:
        """These jobs do not run after all."""
        self._holds = [hold for hold in self._holds if hold[1] not in ids]

    def _look_at(self, use: Use, at: int | None) -> None:
        if not use.stored:
            use.changed = True
        if at is not None and (use.next_at is None or at < use.next_at):
            use.look_at(at)

    def _reserve(self, id: int, uses: Sequence[Use], reserved: frozenset[int]) -> None:
        for use in uses:
            if not use.counts or use.key in reserved:
                continue
            if use.refusal(self._session.now) is not None:
                return
            use.reserve()
            self._holds.append((use.key, id, 0, None))

    def _let_go(self, id: int, keys: frozenset[int]) -> None:
        """A job that starts has reserved these, and takes them no more."""
        if not keys:
            return
        # What it takes is written after this.
        self._session.run("delete_reserved", id=id)
        self._session.freed.update(keys)
        for use in self._uses.values():
            if use.key in keys:
                use.running -= 1

    def _reserved(self, id: int) -> frozenset[int]:
        return frozenset(key for (key,) in self._session.rows("select_reserved", id=id))

    def names(self, row: Row) -> list[str]:
        """Of all that a job takes."""
        takes = self.bounds.takes.get(row[TASK], ())
        if not any(take.argument is not None for take in takes):
            return [take.policy for take in takes]
        args = row[ARGS]
        return limit_names(self.bounds, row[TASK], self._arguments(row) if args is None else args)


def limit_names(bounds: Bounds, task: int, args: bytes) -> list[str]:
    """The limits that a job of a task (its key) takes with these arguments."""
    values = _values(args)
    return [name for take in bounds.takes.get(task, ()) if (name := _instance(take, values)) is not None]


def _instance(take: Take, values: dict[str, msgspec.Raw]) -> str | None:
    """The instance that a job takes; None where its argument says none."""
    if take.argument is None:
        return take.policy
    raw = bytes(values.get(take.argument, msgspec.Raw(b"null")))
    if raw == b"null":
        return None
    value = str(msgspec.json.decode(raw)) if raw.startswith(b'"') else raw.decode()
    if len(value) > _LONGEST:
        value = f"sha256:{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"{take.policy}={value}"


def _values(args: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _ARGUMENTS.decode(args)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # Its attempt will say so.
        return {}
