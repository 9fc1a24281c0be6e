"""Steps and cursors as one attempt knows them: what is done, which names are taken, values to JSON and back.

Writes nothing; that is the port's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import lru_cache, partial
from inspect import isawaitable, iscoroutine, iscoroutinefunction, unwrap
from itertools import islice
from types import FunctionType
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from duly.client.closure import Likeness, function_of, place
from duly.core.changes import changed
from duly.core.encoding import readable
from duly.core.errors import PayloadError, UsageError
from duly.core.job import Steps
from duly.core.names import check_name
from duly.core.payload import decode_result, encode_result

T = TypeVar("T")

_LAMBDA: Final = " (in the return annotation of its function: a lambda has none, functools.partial keeps it)"
_UNSTABLE: Final = (set, frozenset)
_NONE: Final[dict[str, object]] = {}
_PLAIN: Final = frozenset({str, int, float, bool})
_AS_THEY_ARE: Final = frozenset({str, int, bool, type(None)})
"""What JSON that could be written gives back unchanged, without a proof for each value."""


class StepNotKept(PayloadError):
    """A step has run and its value cannot be stored: another attempt would run it again, so that there is none."""


class StepInTransaction(UsageError):
    """A step has run inside a transaction that its own write would wait for: another attempt would fare the same."""


class Journal:
    """Of one attempt. A name stands for one step or one loop: taken twice for different work it is refused."""

    def __init__(self, left: Steps) -> None:
        self._finished = dict(left.finished)
        self._cursors = dict(left.cursors)
        self._steps: dict[str, Likeness] = {}
        self._running: set[str] = set()
        self._loops: set[str] = set()

    def begin(self, name: str, fn: Callable[[], object]) -> bytes | None:
        """The stored value of a finished step, or None: `fn` is to be run. UsageError for a name that means two."""
        _check_name(name)
        if not callable(fn):
            raise UsageError(
                f"job.step({name!r}, {fn!r:.60}): pass the function itself and no call of it: "
                f"job.step({name!r}, lambda: …)"
            )
        if name in self._loops:
            raise UsageError(f"{name!r} is the name of a job.each of this attempt; give the step another one")
        self._check_function(name, fn)
        done = self._finished.get(name)
        if done is None:
            _check_kind(name, fn)
            self._running.add(name)
        return done

    def failed(self, name: str) -> None:
        """It raised: it may be tried again, also with other values."""
        self._running.discard(name)
        del self._steps[name]

    def finished(self, name: str, value: bytes) -> None:
        self._running.discard(name)
        self._finished[name] = value

    def begin_loop(self, name: str, items: object) -> int:
        """How many items are done. UsageError for a name that is taken, and for items without an order."""
        check_name("step", name)
        if isinstance(items, _UNSTABLE):
            raise UsageError(
                f"job.each({name!r}, …) got a set, which has another order in each process; write sorted(…)"
            )
        if not isinstance(items, Iterable):
            what = "an async iterable" if hasattr(items, "__aiter__") else f"{items!r:.60}"
            raise UsageError(
                f"job.each({name!r}, …) got {what}; pass a list, a range or any other iterable of the same order in "
                "each attempt"
            )
        if name in self._loops or name in self._steps:
            raise UsageError(
                f"{name!r} was used before in this attempt, so that this loop would go on where that one ended; "
                f'give each its own name, as job.each("{name}-2", …)'
            )
        self._loops.add(name)
        return self._cursors.get(name, 0)

    def _check_function(self, name: str, fn: Callable[[], object]) -> None:
        now, before = Likeness(fn), self._steps.get(name)
        if before is None:
            self._steps[name] = now
            return
        if not now.same_code(before):
            raise UsageError(
                f"step {name!r} was {before.place} before in this attempt and is {now.place} now; "
                "give each its own name"
            )
        if other := now.differing(before):
            raise UsageError(
                f"step {name!r} came twice in this attempt, with another {' and '.join(other)}: the first value would "
                f'come back. Put what differs into the name, as job.step(f"{name} {{{_part(other[0])}}}", …), '
                f"or write `for … in job.each({name!r}, …)`"
            )
        if name in self._running:
            raise UsageError(f"step {name!r} is running already in this attempt; give each its own name")


def each(items: Iterable[T], done: int, moved: Callable[[int], None]) -> Generator[T, None, None]:
    """The items after the first `done`. One counts as done when the next is asked for, or the end is found."""
    # A range is entered in the middle without walking there.
    rest: Iterable[Any] = items[done:] if isinstance(items, range) else islice(items, done, None)
    for item in rest:
        yield item
        done += 1
        moved(done)


def run_now(name: str, fn: Callable[[], T]) -> T:
    """Call a step's function in a `def` handler. UsageError for one that must be awaited."""
    if iscoroutinefunction(unwrap(fn)):
        raise _must_be_awaited(name)
    value = fn()
    if isawaitable(value):
        if iscoroutine(value):
            value.close()
        raise _must_be_awaited(name)
    return value


async def run_awaited(fn: Callable[[], Awaitable[T] | T]) -> T:
    """Call a step's function on the loop and await what it returns, where that can be awaited."""
    value = fn()
    return await value if isawaitable(value) else value


def encode_step(name: str, fn: Callable[[], object], value: object) -> bytes:
    """A step's value as JSON that is proved to come back as it was; StepNotKept says what to write instead."""
    kind = _kind_of(fn)
    try:
        data = encode_result(value)
        if type(value) in _AS_THEY_ARE and (kind is Any or kind is type(value)):
            return data
        fault = changed(value, decode_result(data, kind), strict=kind is Any)
    except PayloadError as error:
        raise _not_kept(name, str(error), error.path) from error
    if fault is None:
        return data
    path = fault.path()
    where = f"'result{path}'" if path else "the result"
    hint = _LAMBDA if kind is Any else ""
    raise _not_kept(name, f"{where} {fault.reason}{hint}", f"result{path}")


def decode_step(name: str, fn: Callable[[], T], data: bytes) -> T:
    """A stored value as the function's return annotation says. PayloadError when that has changed since."""
    try:
        value: T = decode_result(data, _kind_of(fn))
    except PayloadError as error:
        raise PayloadError(
            f"the value that an earlier attempt kept of step {name!r} does not fit {place(fn)} any more: {error}; "
            "read the old form too, or give the step another name to have it run again",
            path=error.path,
        ) from error
    return value


def _not_kept(name: str, why: str, path: str) -> StepNotKept:
    return StepNotKept(
        f"step {name!r} has run, but its value cannot be kept, and another attempt would run it again: {why}",
        path=path,
    )


def _must_be_awaited(name: str) -> UsageError:
    return UsageError(
        f"job.step({name!r}, …) got an async function: write `await job.astep({name!r}, …)`, in an `async def` handler"
    )


def _check_kind(name: str, fn: Callable[[], object]) -> None:
    """Before the step runs: what it says it returns must have a form in JSON."""
    kind = _kind_of(fn)
    # Not every annotation can be hashed.
    if kind is Any or (type(kind) is type and kind in _PLAIN):
        return
    info = msgspec.inspect.type_info(kind)
    if isinstance(info, msgspec.inspect.CustomType) and not readable(info.cls):
        raise UsageError(
            f"step {name!r}: {place(fn)} returns {info.cls.__name__}, which has no form in JSON; return its id, or a "
            "dataclass with what the handler needs"
        )


def _kind_of(fn: Any) -> Any:
    """The return annotation, where there is one that can be read."""
    if isinstance(fn, partial) and fn.func is asyncio.to_thread and fn.args:
        fn = fn.args[0]
    inner = function_of(fn)
    if not isinstance(inner, (FunctionType, type)):
        inner = getattr(type(inner), "__call__", inner)  # noqa: B004 - its annotations are wanted
    said = getattr(inner, "__annotations__", _NONE)
    if "return" not in said:
        return Any
    if len(said) == 1 and type(said["return"]) is type and said["return"] in _PLAIN:
        return said["return"]
    try:
        kind = get_type_hints(inner, include_extras=True)["return"]
        msgspec.inspect.type_info(kind)
    except Exception:
        # An annotation may be any expression, and may be there for the type checker alone.
        return Any
    return kind


@lru_cache(maxsize=1024)
def _known_name(name: str) -> str:
    return check_name("step", name)


def _check_name(name: str) -> None:
    if type(name) is str:
        _known_name(name)
    else:
        check_name("step", name)


def _part(name: str) -> str:
    """A captured name as it would stand in an f-string."""
    return name if name.isidentifier() and name != "self" else "…"
