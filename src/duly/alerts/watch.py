"""One process's part in the alerts: takes its turn to look, sends what is due, and says that somebody is there.

A worker runs it as a duty, a server in a thread, `duly check --alerts` once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from duly.alerts.deliver import Deliverer, Sent
from duly.alerts.evaluate import Evaluator, Verdict
from duly.alerts.sinks import LogLine, http, named, read_sink
from duly.client.client import Client
from duly.core.defaults import ALERT_EVERY
from duly.core.errors import StoreUnreachable, UsageError
from duly.core.notification import Sink, SinkFailed
from duly.stores.faults import Transient
from duly.telemetry.events import AlertNotSent

_ALIVE_EVERY: Final = 60.0
_LOOK_AGAIN: Final = 5.0
"""Deliveries are looked for so often."""
LOG: Final = "log"


class Round(msgspec.Struct, frozen=True):
    """What came of one round."""

    verdict: Verdict | None
    """None: it was another process's turn to look."""
    sent: Sent


class AlertWatch:
    """Of one process; a duty by its shape. One thread at a time."""

    name = "alerts"

    def __init__(
        self,
        client: Client,
        sinks: Mapping[str, Sink] | None = None,
        clock: Callable[[], float] = time.monotonic,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client = client
        self._clock = clock
        self.sinks = dict(sinks_of(client) if sinks is None else sinks)
        self._evaluator = Evaluator(client, self.sinks)
        self._deliverer = Deliverer(client, self.sinks, stopping)
        self._alive_at: float | None = None

    def round(self, *, always: bool = False) -> Round:
        """Look if it is this process's turn, or `always`; then send what is due. Blocks."""
        verdict = None
        if always or self._client.store.alerts.turn(ALERT_EVERY):
            verdict = self._evaluator.look(self._clock())
            self._say_alive()
        return Round(verdict, self._deliverer.round())

    def run(self, now: float) -> float:
        """As a duty: the seconds until it is due again. Transient while the store does not answer."""
        del now
        try:
            self.round()
        except StoreUnreachable as error:
            # Of `inspect`, which speaks to people.
            if isinstance(error.__cause__, Transient):
                raise error.__cause__ from None
            raise
        return _LOOK_AGAIN

    def failed(self) -> None:
        """What is remembered is only what saves reads."""

    def _say_alive(self) -> None:
        now = self._clock()
        if self._alive_at is not None and now - self._alive_at < _ALIVE_EVERY:
            return
        self._alive_at = now
        for url in self._client.settings.alive_url or ():
            try:
                http.send(http.checked_url(url, "alive_url"), b"", {}, http.TIMEOUT)
            except SinkFailed as error:
                # Its silence is the outside watcher's to notice.
                self._client.tell(AlertNotSent("alive_url", str(error), final=False))


def sinks_of(client: Client) -> dict[str, Sink]:
    """Every sink that code and settings name; without any, the log. UsageError for one that cannot be read."""
    made: dict[str, Sink] = {}
    for name, sink in client.registry.sinks.items():
        made[name] = _read(client, sink) if isinstance(sink, str) else sink
    for text in client.settings.alerts or ():
        name, url = named(text)
        if name in made:
            raise UsageError(f"two sinks for alerts are named {name!r}; name them, as oncall=slack+https://…")
        made[name] = _read(client, url)
    return made or {LOG: LogLine(client.tell)}


def _read(client: Client, url: str) -> Sink:
    sink = read_sink(url)
    return LogLine(client.tell) if isinstance(sink, LogLine) else sink
