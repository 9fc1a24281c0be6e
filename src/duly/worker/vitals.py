"""What one `duly worker` says of itself over HTTP: /livez, /readyz and /metrics, from its supervisor's process.

Adds up what its children count. Answers in threads of its own from what the supervisor saw last; asks no store.
"""

import hmac
import socket
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from duly.core.errors import UsageError
from duly.telemetry.hub import Hub
from duly.telemetry.prometheus import CONTENT_TYPE, WorkerFigures, worker_exposition
from duly.telemetry.totals import Totals
from duly.worker.board import boottime
from duly.worker.family import ChildProcess

_STANDS_STILL: Final = 30.0
_PLAIN: Final = "text/plain; charset=utf-8"

Answer = tuple[int, str, bytes]


class HealthPlace(Struct, frozen=True):
    """Where to listen."""

    host: str
    port: int
    """0: any that is free."""

    def check(self, tokens: Sequence[str]) -> None:
        """UsageError for an address that others reach, without a token."""
        if not tokens and not _is_loopback(self.host):
            raise UsageError(
                f"--health {self.host}:{self.port} is reached from outside: set DULY_HEALTH_TOKEN, which /metrics then "
                f"asks for, or listen on this machine alone with --health {self.port}"
            )


class Seen(Struct, frozen=True):
    """The children, as the supervisor looked at them last."""

    at: float
    """On the clock of `boottime`."""
    problems: tuple[str, ...] = ("no worker process has registered yet",)
    """Why it is not ready."""
    processes: dict[str, int] = {}
    held: int = 0
    exchange_age: float = 0.0


class Vitals:
    """Of one supervisor. `look` belongs to its main thread, the answers to any."""

    def __init__(
        self,
        place: HealthPlace,
        tokens: Sequence[str],
        supervisor: str,
        hub: Hub,
        clock: Callable[[], float] = boottime,
    ) -> None:
        """`tokens`: any of them opens /metrics, as a bearer token; without one it is open."""
        place.check(tokens)
        self.totals = Totals()
        hub.listen(self.totals)
        self._tokens = tuple(token.encode() for token in tokens)
        self._supervisor = supervisor
        self._clock = clock
        self._seen = Seen(clock())
        self._server = _listening(place, self)
        self.port = int(self._server.server_address[1])
        thread = threading.Thread(target=self._server.serve_forever, name="duly-health", daemon=True)
        thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def look(self, children: Sequence[ChildProcess], now: float, *, stopping: bool) -> None:
        """Take in how the children are."""
        registered = [child for child in children if child.registered is not None]
        pulses = [child.board.pulse() for child in registered]
        leaving = sum(map(_leaves, registered))
        problems = [text for child in registered if (text := _trouble(child, now)) is not None]
        if stopping:
            problems.insert(0, "it is stopping")
        elif all(child.is_quarantine or _leaves(child) for child in registered):
            problems.insert(0, "no worker process claims jobs")
        self._seen = Seen(
            now,
            tuple(problems),
            {"claiming": len(registered) - leaving, "leaving": leaving},
            sum(pulse.held for pulse in pulses),
            max((now - pulse.exchanged_at for pulse in pulses if pulse.exchanges), default=0.0),
        )

    def answer(self, path: str, token: str) -> Answer:
        """(status, content type, body) of a GET."""
        match path:
            case "/livez":
                return self._alive()
            case "/readyz":
                problems = (*self._stands_still(), *self._seen.problems)
                return (503 if problems else 200, _PLAIN, _lines(problems or ("ready",)))
            case "/metrics":
                if self._tokens and not any(hmac.compare_digest(token.encode(), one) for one in self._tokens):
                    return (
                        401,
                        _PLAIN,
                        _lines(("send the token of DULY_HEALTH_TOKEN as Authorization: Bearer …",)),
                    )
                return self._metrics()
            case _:
                return 404, _PLAIN, _lines(("this worker answers /livez, /readyz and /metrics",))

    def _alive(self) -> Answer:
        problems = self._stands_still()
        return (503 if problems else 200, _PLAIN, _lines(problems or ("alive",)))

    def _stands_still(self) -> tuple[str, ...]:
        still_for = self._clock() - self._seen.at
        return () if still_for < _STANDS_STILL else (f"the supervisor has stood still for {still_for:.0f} s",)

    def _metrics(self) -> Answer:
        seen = self._seen
        figures = WorkerFigures(
            self._supervisor,
            self.totals.all(),
            seen.processes,
            seen.held,
            seen.exchange_age,
            ready=not (seen.problems or self._stands_still()),
        )
        try:
            return 200, CONTENT_TYPE, worker_exposition(figures)
        except ImportError:
            return 501, _PLAIN, _lines(('metrics need an extra: pip install "duly[metrics]"',))


def _leaves(child: ChildProcess) -> bool:
    return child.stop_sent is not None or child.drain is not None


def _trouble(child: ChildProcess, now: float) -> str | None:
    """Why a child does not do its work, though it lives: it would answer any ping."""
    if child.registered is None:
        return None
    pulse, lease = child.board.pulse(), child.registered.plan.lease
    # A child reports once a heartbeat at least, whether it has work or not.
    since = max(pulse.exchanged_at, child.registered.registered_at)
    if now - since > lease:
        return f"process {child.pid} has had no answer of the store for {now - since:.0f} s"
    if now - pulse.renewed_at > lease:
        return f"the lease of process {child.pid} was not renewed for {now - pulse.renewed_at:.0f} s"
    return None


def _listening(place: HealthPlace, vitals: Vitals) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            scheme, _, token = self.headers.get("Authorization", "").partition(" ")
            given = token.strip() if scheme.lower() == "bearer" else ""
            status, kind, body = vitals.answer(self.path.partition("?")[0], given)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  the name that http.server asks for

        def log_message(self, *_: object) -> None:
            """Probes are no news."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in place.host else socket.AF_INET

    try:
        return Server((place.host, place.port), Handler)
    except OSError as error:
        raise UsageError(f"--health cannot listen on {place.host}:{place.port}: {error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _lines(texts: Sequence[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()
