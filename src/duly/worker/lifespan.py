"""The App's lifespan functions around the life of one process: entered in order, left in reverse."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from inspect import isasyncgenfunction
from typing import Any


class Lifespan:
    """Enter before the first attempt, leave after the last; both on the process's event loop."""

    def __init__(self, functions: Sequence[Callable[[], Any]]) -> None:
        self._functions = tuple(functions)
        self._stack = AsyncExitStack()

    async def enter(self) -> None:
        """Raises what a function raises; those entered before are left first."""
        async with AsyncExitStack() as stack:
            for function in self._functions:
                if isasyncgenfunction(function):
                    await stack.enter_async_context(asynccontextmanager(function)())
                else:
                    stack.enter_context(contextmanager(function)())
            self._stack = stack.pop_all()

    async def leave(self) -> None:
        await self._stack.aclose()
