"""The keys of this App's tickets and sessions: from the setting `secret`, else the store's own.

Reads the store once per kind and process, and again when a text names a key that is not known yet.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from duly.core.signing import STORE_KIND, KeyRing
from duly.stores.urls import parse_url

if TYPE_CHECKING:
    from duly.client.client import Client
    from duly.client.settings import Settings
    from duly.stores.protocol import Store

AGAIN: Final = 5.0
"""Seconds between two looks for a key that is not known."""


def make_key(store: Store, settings: Settings) -> None:
    """Make the store's own key, if there is none and it will be needed; blocks. SQLite does it by itself."""
    if settings.secret is None:
        store.tokens.secret(STORE_KIND, secrets.token_bytes(32))


class Signing:
    """Key rings by purpose: "ticket", "session"."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._rings: dict[str, KeyRing] = {}
        self._looked = 0.0

    def known(self, purpose: str) -> KeyRing | None:
        """The ring, where no look at the store is needed."""
        ring = self._rings.get(purpose)
        given = self._client.settings.secret
        if ring is None and given is not None:
            # One secret may serve several stores, and job 7 of one is not job 7 of another.
            here = f"{purpose}\x1f{_place(self._client.settings)}"
            ring = self._rings[purpose] = KeyRing([secret.encode() for secret in given], here)
        return ring

    def ring(self, purpose: str) -> KeyRing:
        """The ring; blocks for a round trip at the first use without the setting `secret`."""
        return self.known(purpose) or self._read(purpose)

    def renewed(self, purpose: str) -> KeyRing | None:
        """The ring with what was added to the store since; None when it was looked at within seconds, or is fixed."""
        if self._client.settings.secret is not None or time.monotonic() - self._looked < AGAIN:
            return None
        return self._read(purpose)

    def _read(self, purpose: str) -> KeyRing:
        self._looked = time.monotonic()
        keys = self._client.call(self._stored)
        # Of every purpose: each may be asked for next, and would not be read again within seconds.
        for name in {*self._rings, purpose}:
            self._rings[name] = KeyRing(keys, name)
        return self._rings[purpose]

    def _stored(self) -> list[bytes]:
        tokens = self._client.store.tokens
        newest = tokens.secret(STORE_KIND, secrets.token_bytes(32))
        return [newest.value, *(key.value for key in tokens.secrets(STORE_KIND) if key.id != newest.id)]


def _place(settings: Settings) -> str:
    """What all processes call this store, from whatever host and folder they reach it: its database and schema."""
    address = parse_url(settings.url)
    name = urlsplit(address.url).path.strip("/") if address.path is None else address.path.name
    return f"{address.kind}\x1f{name}\x1f{settings.schema}"
