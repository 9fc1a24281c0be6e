"""Expecting an error without a test framework."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def raises(kind: type[BaseException]) -> Iterator[list[BaseException]]:
    """A block that must raise `kind`; the list it yields then holds the error. Any other error passes through."""
    caught: list[BaseException] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
        return
    raise AssertionError(f"{kind.__name__} was expected, and nothing was raised")
