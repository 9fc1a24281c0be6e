"""`App.once`: has this been done before? The same protection as an idempotency key, for any code.

Knows no job.
"""

from __future__ import annotations

from typing import Any

from duly.client.client import Client
from duly.client.provider import OWN
from duly.core.durations import Duration, parse_duration
from duly.core.errors import UsageError
from duly.core.keys import once_digest
from duly.core.names import check_name


def once(client: Client, key: str, connection: Any, keep: Duration) -> bool:
    """True the first time within `keep`."""
    digest, kept = _digest(key), parse_duration(keep, "keep", positive=True)
    if connection is None or connection is OWN:
        return client.call(lambda: client.store.keys.once(digest, kept))
    return client.call(lambda: client.store.once_on(connection, digest, kept))


async def aonce(client: Client, key: str, connection: Any, keep: Duration) -> bool:
    """As `once`, without blocking the loop."""
    digest, kept = _digest(key), parse_duration(keep, "keep", positive=True)
    if connection is None or connection is OWN:
        return await client.acall(lambda: client.store.keys.once(digest, kept))
    with client.reaching():
        return await client.store.aonce_on(connection, digest, kept)


def _digest(key: str) -> bytes:
    try:
        return once_digest(check_name("key", key))
    except UsageError as error:
        raise UsageError(f"once(): {error}") from None
