"""What all routes of one server share: the App, who may ask, how often, and the one writer. Opens nothing."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from duly.app import App
from duly.client.asked import Asking
from duly.client.inspect import Inspect
from duly.client.intake import Intake
from duly.client.operate import Operate
from duly.client.outside import Outside
from duly.core.errors import UsageError
from duly.core.ticket import PURPOSE
from duly.web.auth import Auth, Caller
from duly.web.limits import DEFAULT, Limits
from duly.web.upkeep import Upkeep
from duly.web.watcher import Watcher

ENVELOPE = 64 * 1024
"""Bytes of a request around the arguments of its job."""
BATCH_PAYLOADS = 16
"""So many of the largest payloads fit into one batch's body."""
_BASES: Final = 100
"""Names of this server that are remembered; clients write what they like as their host."""


class WebOptions(Struct, frozen=True):
    """How one server answers."""

    open: bool = False
    """Whether this machine is answered without a token."""
    public_url: str | None = None
    """Where clients reach it, as "https://shop.example/duly"; None: what the settings say."""
    rate: str | None = DEFAULT
    """How often one token may ask; None: as often as it likes."""


class Site:
    """One server."""

    def __init__(self, app: App, options: WebOptions) -> None:
        self.app = app
        self.options = options
        self.auth = Auth(app.client, is_open=options.open)
        self.limits = Limits(options.rate)
        self.intake = Intake(app.client)
        self.asking = Asking(app.client)
        self._bases: dict[tuple[str, str | None, str], str] = {}
        self._signs = False
        self._upkeep: Upkeep | None = None

    @cached_property
    def public_url(self) -> str | None:
        """Where clients reach it; None: as each request says. UsageError for what is no URL."""
        said = self.options.public_url or self.app.settings.public_url
        if said is not None and not said.startswith(("http://", "https://")):
            raise UsageError(f"public_url={said!r:.100} begins with neither http:// nor https://")
        return said

    @cached_property
    def largest_body(self) -> int:
        """Bytes of a request that is about one job."""
        return self.app.settings.max_payload + ENVELOPE

    @cached_property
    def largest_batch(self) -> int:
        return BATCH_PAYLOADS * self.app.settings.max_payload + ENVELOPE

    @cached_property
    def watcher(self) -> Watcher:
        """Looks for all who wait for a change of a job."""
        return Watcher(self.app)

    async def ready_for_tickets(self) -> None:
        """Read the key that signs tickets, once."""
        if not self._signs:
            await self.app.client.acall(self.app.client.signing.ring, PURPOSE)
            self._signs = True

    @cached_property
    def outside(self) -> Outside:
        """Work for workers of other languages."""
        return Outside(self.app.client)

    def keep_up(self) -> None:
        """Do what workers of ours would: somebody claims here, and there may be none of ours."""
        if self._upkeep is None:
            self._upkeep = Upkeep(self.app)
            self._upkeep.start()

    def close(self) -> None:
        """End what runs beside the requests; blocks for as long as one round of upkeep."""
        if self._upkeep is not None:
            self._upkeep.stop()
            self._upkeep = None

    @property
    def inspect(self) -> Inspect:
        return self.app.inspect

    def operate(self, caller: Caller) -> Operate:
        """The verbs, under the caller's name; in the open mode under DULY_ACTOR, else user@host."""
        return Operate(self.app.client, caller.name if caller.id else None)

    def base(self, request: Request) -> str:
        """The URL before every path, without a slash at its end."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        scope = request.scope
        said = (scope["scheme"], request.headers.get("host"), scope.get("root_path", ""))
        found = self._bases.get(said)
        if found is None:
            # Checked and put together by Starlette, which costs a twentieth of what a request does: not for each.
            url = request.url
            found = f"{url.scheme}://{url.netloc}{said[2]}".rstrip("/")
            if len(self._bases) >= _BASES:
                self._bases.clear()
            self._bases[said] = found
        return found
