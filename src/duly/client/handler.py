"""A user's function as declared: how it is called, where it stands, what it takes.

Looks at the function once, at decoration; its annotations are resolved at first use. Runs nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, get_type_hints

import msgspec

from duly.client.job import Job
from duly.core.errors import PayloadError, UsageError
from duly.core.names import check_name
from duly.core.payload import Arguments, CustomReader, decode_result, encode_result

Isolation = Literal["loop", "thread", "process"]


class Handler:
    """The function behind a task. UsageError for what cannot be a handler, with the `def` line to write."""

    def __init__(self, fn: Callable[..., Any], custom: CustomReader | None = None) -> None:
        _refuse_unfit(fn)
        self.fn = fn
        self.is_async = inspect.iscoroutinefunction(fn)
        self.place = _place(fn)
        """file:line, for messages."""
        self.arguments = Arguments(fn, job_type=Job, custom=custom)
        """Their types are read at first use; UsageError then names an annotation that cannot be found."""

    @property
    def takes_job(self) -> bool:
        """Whether the first parameter is the Job, by its annotation."""
        return self.arguments.takes_job

    def task_name(self, said: str | None) -> str:
        """What its jobs are stored under: the bare name, the same for `python app.py` and from any module."""
        if said is None and self.fn.__name__ == "<lambda>":
            raise UsageError(f"{self.place}: a lambda has no name; write a `def`, or @jobs.task(name='…')")
        return check_name("task", self.fn.__name__ if said is None else said)

    def encode_result(self, value: object) -> tuple[bytes | None, str | None]:
        """What the function returned, as JSON; or a note why it cannot be stored, which ends no attempt."""
        if value is None:
            return None, None
        try:
            return encode_result(value), None
        except (PayloadError, UsageError) as error:
            return None, f"result not storable: {error}"

    def decode_result(self, data: bytes | None) -> object:
        """A stored result as the return annotation says; plain JSON where it says nothing that can be read."""
        return None if data is None else decode_result(data, self._result_kind)

    @cached_property
    def may_return_nothing(self) -> bool:
        """Whether the return annotation, or its absence, admits None."""
        try:
            msgspec.convert(None, self._result_kind)
        except msgspec.ValidationError:
            return False
        return True

    @cached_property
    def _result_kind(self) -> Any:
        try:
            kind = get_type_hints(inspect.unwrap(self.fn), include_extras=True).get("return", Any)
            msgspec.inspect.type_info(kind)
        except Exception:
            # An annotation may be any expression, and may be there for the type checker alone.
            return Any
        return kind

    def isolation(self, wanted: str) -> Isolation:
        """Where it runs: "auto" is the loop for async, a thread for def."""
        match wanted:
            case "auto":
                return "loop" if self.is_async else "thread"
            case "process":
                return "process"
            case "thread" if not self.is_async:
                return "thread"
            case "loop" if self.is_async:
                return "loop"
            case "thread" | "loop":
                kind = "async def" if self.is_async else "def"
                raise UsageError(
                    f"{self.place}: isolation={wanted!r} does not fit `{kind} {self.fn.__name__}`: "
                    "async runs on the loop, def in a thread; leave it out, or write isolation='process'"
                )
            case _:
                raise UsageError(f"isolation={wanted!r} is none of 'auto', 'loop', 'thread', 'process'")

    def callers_signature(self) -> inspect.Signature:
        """What `enqueue` takes: without the job."""
        signature = inspect.signature(self.fn)
        parameters = list(signature.parameters.values())
        return signature.replace(parameters=parameters[1:] if self.takes_job else parameters)


def _refuse_unfit(fn: Any) -> None:
    if not callable(fn) or inspect.isclass(fn) or not hasattr(fn, "__name__"):
        raise UsageError(f"{fn!r:.80} is no function; a task is a `def` or an `async def`, outside any class")
    if inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn):
        raise UsageError(
            f"{_place(fn)}: {fn.__name__} contains `yield`, so that calling it runs nothing; return instead"
        )
    first = next(iter(inspect.signature(fn).parameters.values()), None)
    if first is not None and first.name in {"self", "cls"} and first.annotation is first.empty:
        raise UsageError(
            f"{_place(fn)}: {fn.__qualname__} is a method; a task is a function, outside any class"
        )
    inner = inspect.unwrap(fn)
    if inspect.iscoroutinefunction(inner) and not inspect.iscoroutinefunction(fn):
        # Run in a thread it would hand back a coroutine that nobody awaits, and the job would seem done.
        raise UsageError(
            f"{_place(inner)}: a decorator hides that {fn.__name__} is async; make its wrapper an `async def`, "
            "or put @jobs.task directly above the function"
        )


def _place(fn: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return (
        f"{fn.__module__}.{fn.__qualname__}" if code is None else f"{code.co_filename}:{code.co_firstlineno}"
    )
