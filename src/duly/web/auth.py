"""Who asks, and what they may do: bearer tokens, other ways that are added, and the open mode of one's own machine.

Knows no route.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request

from duly.client.bearers import Bearers
from duly.client.client import Client
from duly.core.errors import UsageError
from duly.core.operating import TokenRecord
from duly.core.scopes import ALL, Scopes, Verb
from duly.web.limits import Limits
from duly.web.problems import Refused

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})

_BEARER: Final = {"WWW-Authenticate": 'Bearer realm="duly"'}


class Caller(Struct, frozen=True):
    """Whoever asks."""

    id: int
    """The token's; 0 without one."""
    name: str
    """What stands under their acts."""
    scopes: Scopes

    def may(self, verb: Verb, queue: str | None = None) -> bool:
        """Whether they may do this in the queue; without one: in every queue."""
        return self.scopes.allows(verb, queue)

    def check(self, verb: Verb, queue: str | None = None) -> None:
        """Refused, 403, with the scope that is missing."""
        if self.may(verb, queue):
            return
        some = self.scopes.queues(verb)
        where = verb if queue is None else f"{verb}:{queue}"
        hint = ""
        if queue is None and some:
            hint = f"; it may in {', '.join(sorted(some)[:20])}: name one of these queues"
        raise Refused(403, f"This needs the scope {where}", f"{self.name} has {self.scopes}{hint}")


OPEN: Final = Caller(0, "open", ALL)
Way = Callable[[Request], Awaitable[Caller | None]]


class Auth:
    """Finds the caller of a request."""

    def __init__(self, client: Client, *, is_open: bool) -> None:
        self.is_open = is_open
        self.bearers = Bearers(client)
        self._ways: list[Way] = []
        self._unknown = Limits("20/s burst 100")
        self._scopes: dict[tuple[str, ...], Scopes] = {}

    def add(self, way: Way) -> None:
        """Another way to know a caller, as by a session's cookie; asked when no bearer token is there."""
        self._ways.append(way)

    async def caller(self, request: Request) -> Caller:
        """Who asks. Refused: 401 without a token or with an unknown one, 403 for foreign pages in the open mode."""
        header = request.headers.get("authorization")
        if header is not None:
            return await self._bearer(request, header)
        for way in self._ways:
            found = await way(request)
            if found is not None:
                return found
        if self.is_open:
            refuse_foreign_page(request)
            return OPEN
        raise Refused(
            401,
            "This needs a token",
            "send Authorization: Bearer duly_…; duly token create --scope enqueue:mail makes one",
            headers=_BEARER,
        )

    async def _bearer(self, request: Request, header: str) -> Caller:
        scheme, _, text = header.partition(" ")
        record = await self.bearers.find(text.strip()) if scheme.lower() == "bearer" else None
        if record is not None:
            return Caller(record.id, record.name, self._read(record))
        # Each unknown one costs a look into the store.
        self._unknown.check(request.client.host if request.client is not None else "")
        raise Refused(
            401,
            "This token is not known, has expired or was revoked",
            "duly token list shows which are live",
            headers=_BEARER,
        )

    def _read(self, record: TokenRecord) -> Scopes:
        found = self._scopes.get(record.scopes)
        if found is None:
            if len(self._scopes) > 1_000:
                self._scopes.clear()
            try:
                found = Scopes.parse(record.scopes)
            except UsageError:
                # Of a newer release: what is not understood is not allowed.
                found = Scopes()
            self._scopes[record.scopes] = found
        return found


def refuse_foreign_page(request: Request) -> None:
    """Without tokens the browser of this machine must not act for a page of somewhere else. Refused, 403.

    Another host's name that leads here (DNS rebinding), or another page's request.
    """
    host = request.headers.get("host", "")
    name = host if host.startswith("[") and host.endswith("]") else host.rpartition(":")[0] or host
    if name not in LOOPBACK:
        raise Refused(
            403,
            "Without tokens only this machine is answered",
            f"the request names the host {host!r:.100}; ask 127.0.0.1, or start duly serve without --open",
        )
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        raise Refused(
            403, "Without tokens no other site is answered", f"the request comes from {origin!r:.100}"
        )
