"""Which connection a write goes into: the one that was said, the App's provider's, or the store's own.

Knows no kind of connection.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from duly.client.client import Client
from duly.client.settings import without_password
from duly.core.errors import UsageError
from duly.stores.connections import ambient

Provider = Callable[[], Any]

_told: Final[set[tuple[str, int]]] = set()


class TransactionNotJoined(UserWarning):
    """A job was stored beside a transaction that is open in the same thread: pass `connection=` to join it."""


class Own:
    """`using(connection=duly.OWN)`: store the job in a transaction of its own, whatever the App's provider gives."""

    def __repr__(self) -> str:
        return "duly.OWN"


OWN: Final = Own()


def check_provider(provider: object) -> Provider | None:
    """The provider, if it can be asked; UsageError else."""
    if provider is None or callable(provider):
        return provider
    raise UsageError(
        f"App(connection={provider!r:.60}) is not a function; write App(connection=lambda: db.session), which is "
        "asked at each enqueue"
    )


def connection_for(client: Client, said: Any) -> Any:
    """What to write into; None is the store's own transaction. Asks the provider in the caller's thread or task.

    UsageError, or the warning TransactionNotJoined, when a transaction is open here that the write would not be in.
    """
    if said is None and client.provider is not None:
        said = client.provider()
    elif said is OWN:
        _look(client, warn=False)
        return None
    if said is None:
        _look(client, warn=True)
    return said


def _look(client: Client, *, warn: bool) -> None:
    """SQLite has one writer: beside an open transaction of the same thread, a write would wait for itself."""
    ambient.watch()
    url = client.settings.url
    open_here = ambient.unjoined(url)
    if open_here is None:
        return
    frame = _caller()
    place = (frame.f_code.co_filename, frame.f_lineno)
    if url.startswith("sqlite:"):
        raise UsageError(
            f"{open_here} has a transaction open here on {without_password(url)}, and this call would wait for it: "
            f"pass connection=, or commit first ({place[0]}:{place[1]})"
        )
    if warn and place not in _told:
        _told.add(place)
        warnings.warn_explicit(
            f"{open_here} has a transaction open here, and the job is not in it: it may run before your commit, and "
            "after your rollback. Pass connection=, or connection=duly.OWN if that is meant "
            f"({place[0]}:{place[1]})",
            TransactionNotJoined,
            *place,
            module=frame.f_globals.get("__name__"),
        )


def _caller() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith("duly."):
        frame = frame.f_back
    return frame
