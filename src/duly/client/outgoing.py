"""One HTTP POST to an address that a stranger named: resolved once, checked, and connected to as checked.

Follows no redirect, uses no proxy, and reads no more of an answer than its status. Knows no job.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from duly.core.addresses import is_public
from duly.core.errors import UsageError

MAX_URL: Final = 2_000
_TEXT: Final = re.compile(r"[!-~]+")
_MOST_ADDRESSES: Final = 2
_LONGEST_WAIT: Final = timedelta(hours=1)

Resolver = Callable[[str, int], Iterable[str]]
"""IP addresses of a host."""


class Refused(Exception):
    """The address is not one to call on a stranger's word; trying again does not help."""


class NotDelivered(Exception):
    """No answer, or one that asks to come again."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Receipt(Struct, frozen=True):
    """An answer."""

    status: int
    retry_after: timedelta | None = None


def check_url(url: object, *, private: bool = False) -> str:
    """The URL, if a message may go there as far as its text says. UsageError with what to write else.

    `private` lets http:// and addresses of this machine and its network through.
    """
    if not isinstance(url, str) or len(url) > MAX_URL or _TEXT.fullmatch(url) is None:
        raise UsageError(f"{url!r:.80} is no URL; write https://shop.example/told")
    parts = _split(url)
    schemes = {"https", "http"} if private else {"https"}
    if parts.scheme not in schemes or not parts.hostname:
        raise UsageError(f"{url:.80} is no URL to be told at; write https://shop.example/told")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "a URL to be told at holds no user and no password; sign and check the message instead"
        )
    if not private and _is_address(parts.hostname) and not is_public(parts.hostname):
        raise UsageError(f"{parts.hostname} is no public address; a message goes to none inside a network")
    return url


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout: timedelta = timedelta(seconds=10),
    private: bool = False,
    resolve: Resolver | None = None,
) -> Receipt:
    """Send one message; blocks for resolving the name, and then for `timeout` with each of two addresses at most.

    Refused where any address of the host is not public, unless `private`; NotDelivered without an answer. Any status is
    an answer.
    """
    parts = _split(check_url(url, private=private))
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    addresses = _checked(host, port, resolve or _resolve, private=private)
    seconds = timeout.total_seconds()
    fault: Exception | None = None
    for address in addresses[:_MOST_ADDRESSES]:
        connection = _connection(parts.scheme, host, port, address, seconds)
        with _within(seconds, connection):
            try:
                connection.connect()
            except OSError as error:
                fault = error
                continue
            return _exchange(connection, parts, body, headers)
    raise NotDelivered(f"{host} cannot be reached: {fault}")


@contextmanager
def _within(seconds: float, connection: HTTPConnection) -> Iterator[None]:
    """Cut the connection then: a timeout of a socket counts from byte to byte, and one that drips would hold us."""
    watch = threading.Timer(seconds, _cut, [connection])
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        connection.close()


def _exchange(
    connection: HTTPConnection, parts: SplitResult, body: bytes, headers: Mapping[str, str]
) -> Receipt:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", target, body, {**headers, "Connection": "close"})
        return _receipt(connection.getresponse())
    except (OSError, HTTPException) as error:
        raise NotDelivered(f"{parts.hostname} did not answer: {type(error).__name__}: {error}") from error


def _cut(connection: HTTPConnection) -> None:
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _receipt(response: HTTPResponse) -> Receipt:
    said = (response.getheader("Retry-After") or "").strip()
    wait = timedelta(seconds=int(said)) if re.fullmatch("[0-9]{1,6}", said) else None
    return Receipt(response.status, None if wait is None else min(wait, _LONGEST_WAIT))


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"{url:.80} is no URL: {error}") from error
    return parts


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _resolve(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotDelivered(f"{host} has no address: {error}") from error
    return [str(entry[4][0]) for entry in found]


def _checked(host: str, port: int, resolve: Resolver, *, private: bool) -> list[str]:
    addresses = list(dict.fromkeys(resolve(host, port)))
    if not addresses:
        raise NotDelivered(f"{host} has no address")
    # One inside is enough: a name that has both is made to be asked twice.
    inside = [address for address in addresses if not is_public(address)]
    if inside and not private:
        raise Refused(f"{host} leads to {inside[0]}, which is no public address")
    return addresses


class _Plain(HTTPConnection):
    """To the address that was checked, whatever the name says by now."""

    address: str

    def connect(self) -> None:
        self.sock = socket.create_connection((self.address, self.port), self.timeout)


class _Encrypted(HTTPSConnection):
    """The same; the certificate is the name's."""

    address: str
    secured: ssl.SSLContext

    def connect(self) -> None:
        self.sock = socket.create_connection((self.address, self.port), self.timeout)
        secure = self.secured.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        # Where whoever cuts the connection finds it during the handshake, too.
        self.sock = secure
        secure.do_handshake()


def _connection(scheme: str, host: str, port: int, address: str, seconds: float) -> HTTPConnection:
    if scheme == "http":
        plain = _Plain(host, port, timeout=seconds)
        plain.address = address
        return plain
    secured = ssl.create_default_context()
    encrypted = _Encrypted(host, port, timeout=seconds, context=secured)
    encrypted.address, encrypted.secured = address, secured
    return encrypted
