"""A user's function as declared: how it is called, where it stands, what it takes.

Looks at the function once, at decoration; its annotations are resolved at first use. Runs nothing.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cached_property
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from duly.client.job import Job
from duly.core.errors import UsageError
from duly.core.payload import Arguments

Isolation = Literal["loop", "thread", "process"]
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Handler:
    """The function behind a task. UsageError for what cannot be a handler, with the `def` line to write."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        _refuse_unfit(fn)
        self.fn = fn
        self.is_async = inspect.iscoroutinefunction(fn)
        self.place = _place(fn)
        """file:line, for messages."""
        self.signature = inspect.signature(fn)
        self.takes_job = self._job_stands_first()

    @cached_property
    def arguments(self) -> Arguments:
        """Their types, resolved now. UsageError names a parameter whose annotation cannot be found."""
        return Arguments(self.fn, skip=1 if self.takes_job else 0)

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
        parameters = list(self.signature.parameters.values())
        return self.signature.replace(parameters=parameters[1:] if self.takes_job else parameters)

    def _job_stands_first(self) -> bool:
        parameters = list(self.signature.parameters.values())
        stray = [item for item in parameters[1:] if _is_job(item.annotation, self.fn)]
        first = parameters[0] if parameters else None
        stands_first = first is not None and _is_job(first.annotation, self.fn)
        if (
            first is not None
            and stands_first
            and (first.kind not in _POSITIONAL or first.default is not first.empty)
        ):
            stray, stands_first = [first], False
        if stray:
            raise UsageError(self._correction(stray[0], stands_first))
        return stands_first

    def _correction(self, job: inspect.Parameter, twice: bool) -> str:
        others = [item for item in self.signature.parameters.values() if item is not job]
        rest = ", ".join(str(item) for item in others)
        head = "" if twice else f"{job.name}: Job" + (", " if rest else "")
        kind = "async def" if self.is_async else "def"
        return (
            f"{self.place}: the job must be the first parameter and have no default; write\n"
            f"    {kind} {self.fn.__name__}({head}{rest}): ..."
        )


def _refuse_unfit(fn: object) -> None:
    if isinstance(fn, staticmethod | classmethod):
        raise UsageError("a task is a plain function; put @jobs.task on a function outside the class")
    if not inspect.isfunction(fn):
        raise UsageError(f"{fn!r:.80} is no function; a task is a `def` or an `async def`")
    if inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn):
        raise UsageError(
            f"{_place(fn)}: {fn.__name__} contains `yield`, so that calling it runs nothing; return instead"
        )
    first = next(iter(inspect.signature(fn).parameters.values()), None)
    if first is not None and first.name in {"self", "cls"} and first.annotation is first.empty:
        raise UsageError(
            f"{_place(fn)}: {fn.__qualname__} is a method; a task is a function, outside any class"
        )


def _place(fn: Callable[..., Any]) -> str:
    code = fn.__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def _is_job(annotation: object, fn: Callable[..., Any]) -> bool:
    if isinstance(annotation, str):
        annotation = _evaluated(annotation, fn)
    if isinstance(annotation, str):
        # Importable for the type checker alone: the text is all there is.
        return annotation.rpartition(".")[2] == "Job" and _imports_ours(fn)
    if get_origin(annotation) in {Union, UnionType}:
        return any(_is_job(part, fn) for part in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, Job)


def _evaluated(annotation: str, fn: Callable[..., Any]) -> object:
    namespace: object = fn.__globals__
    for part in annotation.strip("\"' ").split("."):
        try:
            namespace = namespace[part] if isinstance(namespace, dict) else getattr(namespace, part)
        except (KeyError, AttributeError):
            return annotation.strip("\"' ")
    return namespace


def _imports_ours(fn: Callable[..., Any]) -> bool:
    """Whether the module could mean duly's Job at all: it has no Job of its own."""
    module = sys.modules.get(fn.__module__)
    return not hasattr(module, "Job")
