"""Blocking methods and their `a` twins: written once, the twin runs in a thread of the client.

Types and help() of the twin are those of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from duly.client.client import Client

P = ParamSpec("P")
T = TypeVar("T")


class HasClient(Protocol):
    @property
    def client(self) -> Client: ...


S = TypeVar("S", bound=HasClient)


def blocking(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Do I/O in the caller's thread: warn inside a running loop, and translate the store's faults."""
    name = method.__name__

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.client.refuse_blocking(
            f"{type(self).__name__.lower()}.{name}()", f"await {type(self).__name__.lower()}.a{name}()"
        )
        return self.client.call(method, self, *args, **kwargs)

    return call


def twin(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """The same method for async code; cancelling the wait does not stop what it does."""

    @wraps(method)
    async def acall(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.client.acall(method, self, *args, **kwargs)

    acall.__name__ = f"a{method.__name__}"
    return acall
