"""Which connection a write goes into: the one that was said, the App's provider's, or the store's own.

Knows no kind of connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from duly.client.client import Client
from duly.core.errors import UsageError

Provider = Callable[[], Any]


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
    """What to write into; None is the store's own transaction. Asks the provider in the caller's thread or task."""
    if said is OWN:
        return None
    if said is None and client.provider is not None:
        return client.provider()
    return said
