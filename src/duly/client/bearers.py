"""Who a bearer token belongs to, for a server: asked of the store at most every few seconds per token.

A revoked token is refused within `FRESH` seconds. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from duly.client.client import Client
from duly.core.bearer import digest_of, is_text
from duly.core.errors import DulyError
from duly.core.operating import TOUCH_EVERY, TokenRecord

FRESH: Final = 5.0
"""Seconds for which an answer of the store holds."""
_KEPT: Final = 10_000


class _Known(NamedTuple):
    record: TokenRecord | None
    read_at: float


class Bearers:
    """Tokens as this process knows them; one per server and event loop."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[bytes, _Known] = {}
        self._asked: dict[bytes, asyncio.Future[TokenRecord | None]] = {}
        self._touched: dict[int, float] = {}
        self._touching: set[asyncio.Task[None]] = set()

    async def find(self, text: str) -> TokenRecord | None:
        """The live token of this text; None for any other. Compares nothing but digests, by an index."""
        return await self.of_digest(digest_of(text)) if is_text(text) else None

    async def of_digest(self, digest: bytes) -> TokenRecord | None:
        """The live token of this digest, for a proof that was signed for it; None for any other."""
        known = self._known.get(digest)
        if known is None or self._clock() - known.read_at >= FRESH:
            record = await self._ask(digest)
        else:
            record = known.record
        if record is None or record.state != "live":
            return None
        self._touch(record.id)
        return record

    async def any(self) -> bool:
        """Whether a live token exists at all."""
        records = await self._client.acall(self._client.store.tokens.all)
        return any(record.state == "live" for record in records)

    async def _ask(self, digest: bytes) -> TokenRecord | None:
        """One question at a time per token, however many requests wait for the answer."""
        asked = self._asked.get(digest)
        if asked is None:
            asked = asyncio.ensure_future(self._read(digest))
            self._asked[digest] = asked
            asked.add_done_callback(lambda _: self._asked.pop(digest, None))
        return await asyncio.shield(asked)

    async def _read(self, digest: bytes) -> TokenRecord | None:
        record = await self._client.acall(self._client.store.tokens.find, digest)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[digest] = _Known(record, self._clock())
        return record

    def _touch(self, id: int) -> None:
        now = self._clock()
        if now - self._touched.get(id, float("-inf")) < TOUCH_EVERY.total_seconds():
            return
        self._touched[id] = now
        task = asyncio.ensure_future(self._tell(id))
        self._touching.add(task)
        task.add_done_callback(self._touching.discard)

    async def _tell(self, id: int) -> None:
        try:
            await self._client.acall(self._client.store.tokens.touch, [id])
        except DulyError:
            # When it was last used is told again a minute later; no request fails for it.
            return
