"""One POST with a bounded time and without redirects, for the sinks that speak HTTP. Knows no sink."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from http.client import HTTPException, HTTPMessage
from typing import IO, Final
from urllib.parse import urlsplit

from duly.core.errors import UsageError
from duly.core.notification import SinkFailed

TIMEOUT: Final = timedelta(seconds=10)
_AGENT: Final = "duly-alerts"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Secrets in headers and paths go where they were meant to, and nowhere else."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        del req, fp, code, msg, headers, newurl


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


def checked_url(url: str, what: str) -> str:
    """UsageError, which does not repeat the URL, for what is no address of a server."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{what} needs the address of a server, as https://example.org/hook")
    return url


def send(url: str, body: bytes, headers: Mapping[str, str], timeout: timedelta) -> None:
    """POST it. SinkFailed unless the answer is a success; its text names the server only."""
    host = urlsplit(url).hostname
    request = urllib.request.Request(  # noqa: S310 - checked_url allows http and https only
        url, data=body, headers={"User-Agent": _AGENT, **headers}, method="POST"
    )
    try:
        with _OPENER.open(request, timeout=timeout.total_seconds()) as answer:
            answer.read(1024)
    except urllib.error.HTTPError as error:
        with error:
            raise SinkFailed(f"{host} answers {error.code} {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise SinkFailed(f"{host} cannot be reached: {reason}") from None
