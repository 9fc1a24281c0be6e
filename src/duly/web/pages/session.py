"""Who looks at a page: sign-in by a one-time code or a token, the cookie that lasts a day's work, and the sign-out.

The cookie is sent to the dashboard's own paths only, so that no other route can be reached by it. Knows no page.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from duly.client.logins import (
    PURPOSE,
    SESSION_LASTS,
    form_mark,
    make_login,
    proof_text,
    read_proof,
    use_code,
)
from duly.client.logins import login_link as link_of
from duly.core.bearer import digest_of
from duly.core.errors import UsageError
from duly.core.operating import TokenRecord
from duly.core.scopes import Scopes
from duly.web.auth import OPEN, Caller, refuse_foreign_page
from duly.web.limits import Limits
from duly.web.problems import Refused
from duly.web.site import Site

COOKIE: Final = "duly_session"
SIGN_INS: Final = "10/min burst 20"
"""So many tries from one address."""


class Holder:
    """Somebody who is let in, and what their forms must carry."""

    __slots__ = ("caller", "expires", "mark")

    def __init__(self, caller: Caller, mark: str, expires: datetime | None) -> None:
        self.caller = caller
        self.mark = mark
        self.expires = expires


class Sessions:
    """The sessions of one server; nothing of them is stored."""

    def __init__(self, site: Site, clock: Callable[[], float] = time.time) -> None:
        self._site = site
        self._clock = clock
        self._tries = Limits(SIGN_INS)

    async def holder(self, request: Request) -> Holder | None:
        """Who asks; None for whoever has to sign in. Refused for an unknown bearer token."""
        site = self._site
        if "authorization" in request.headers:
            caller = await site.auth.caller(request)
            return await self._held(caller, f"token {caller.id}", None)
        text = request.cookies.get(COOKIE)
        if text is not None:
            proof = await site.app.client.acall(read_proof, site.app.client, text, "session", self._clock)
            record = None if proof is None else await site.auth.bearers.of_digest(proof.digest)
            if proof is not None and record is not None:
                until = datetime.fromtimestamp(proof.expires, UTC)
                return await self._held(_caller_of(record), proof.nonce.hex(), until)
        if site.auth.is_open:
            refuse_foreign_page(request)
            return await self._held(OPEN, "open", None)
        return None

    async def by_code(self, request: Request, code: str) -> str | None:
        """The cookie's text for a one-time code, which is used up by this; None for one that opens nothing."""
        self._tries.check(_address(request))
        proof = await self._site.app.client.acall(use_code, self._site.app.client, code)
        return None if proof is None else await self._opened(proof.digest)

    async def by_token(self, request: Request, token: str) -> str | None:
        """The cookie's text for whoever knows a token; None for one that is not known or not live."""
        self._tries.check(_address(request))
        record = await self._site.auth.bearers.find(token.strip())
        return None if record is None else await self._opened(digest_of(token.strip()))

    def keep(self, request: Request, response: Response, text: str) -> None:
        """Give the browser its proof."""
        response.set_cookie(
            COOKIE,
            text,
            max_age=int(SESSION_LASTS.total_seconds()),
            path=self.path(request),
            secure=self.secure(request),
            httponly=True,
            samesite="strict",
        )

    def end(self, request: Request, response: Response) -> None:
        """Take it away."""
        response.delete_cookie(
            COOKIE, path=self.path(request), secure=self.secure(request), httponly=True, samesite="strict"
        )

    def path(self, request: Request) -> str:
        """Where the dashboard is."""
        return f"{request.scope.get('root_path', '')}/ui"

    def secure(self, request: Request) -> bool:
        """Whether the browser speaks TLS to here, or to the proxy in front."""
        return request.url.scheme == "https" or (self._site.public_url or "").startswith("https://")

    async def _opened(self, digest: bytes) -> str | None:
        record = await self._site.auth.bearers.of_digest(digest)
        if record is None:
            return None
        lasting = SESSION_LASTS
        if record.expires_at is not None:
            left = record.expires_at.timestamp() - self._clock()
            lasting = min(lasting, timedelta(seconds=max(0.0, left)))
        client = self._site.app.client
        ring = await client.acall(client.signing.ring, PURPOSE)
        return proof_text(ring, "session", digest, lasting, self._clock)

    async def _held(self, caller: Caller, holder: str, expires: datetime | None) -> Holder:
        client = self._site.app.client
        ring = await client.acall(client.signing.ring, PURPOSE)
        return Holder(caller, form_mark(ring, holder), expires)


def login_link(site: Site) -> str:
    """A link that opens the dashboard of this server once, for whoever starts it on his own machine; blocks."""
    client = site.app.client
    return link_of(site.app.settings, make_login(site.app.operate, client).code)


def check_origin(site: Site, request: Request) -> None:
    """Refused, 403, for a form that another site's page has sent."""
    origin = request.headers.get("origin")
    if origin is None:
        # Browsers name the origin of every form they post; what names none is no browser, or a very old one.
        if request.headers.get("sec-fetch-site", "same-origin") in {"same-origin", "none"}:
            return
        raise Refused(403, "This form came from another site", "open the page here and send it again")
    here = {request.headers.get("host", "")}
    if site.public_url is not None:
        here.add(urlsplit(site.public_url).netloc)
    if urlsplit(origin).netloc not in here:
        raise Refused(
            403,
            "This form came from another site",
            f"it says that it comes from {origin!r:.100}; open the page here and send it again",
        )


def check_mark(holder: Holder, given: str) -> None:
    """Refused, 403, for a form that is not of this session's pages."""
    if not hmac.compare_digest(holder.mark.encode(), given.encode("utf-8", "replace")):
        raise Refused(
            403,
            "This form is not of your session",
            "go back, load the page again, and send the form from there",
        )


def _caller_of(record: TokenRecord) -> Caller:
    try:
        scopes = Scopes.parse(record.scopes)
    except UsageError:
        # Of a newer release: what is not understood is not allowed.
        scopes = Scopes()
    return Caller(record.id, record.name, scopes)


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""
