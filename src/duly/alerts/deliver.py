"""Hands decided changes to their sinks, at least once, and tries again later. Decides nothing.

A delivery is taken for a minute, which every sink's time fits into: whoever dies in between leaves it to others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

import msgspec

from duly.client.client import Client
from duly.client.settings import without_password
from duly.core.notification import Notification, Sink, SinkFailed
from duly.core.operating import AlertDelivery
from duly.telemetry.events import AlertNotSent

_TAKEN: Final = timedelta(minutes=1)
_WAITS: Final = tuple(timedelta(seconds=s) for s in (10, 30, 60, 300, 900, 1800, 3600))
_MOST_TRIES: Final = 30
"""A sink that took nothing for about a day is given up for that change; the next change is tried again."""
_MOST: Final = 200


class Sent(msgspec.Struct, frozen=True):
    """What one round has delivered."""

    sent: int = 0
    failed: tuple[str, ...] = ()
    """A sentence each."""


class Deliverer:
    """Of one process."""

    def __init__(
        self, client: Client, sinks: Mapping[str, Sink], stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self._client = client
        self._sinks = dict(sinks)
        self._stopping = stopping

    def round(self) -> Sent:
        """Send what is due, the oldest change first; blocks for as long as the sinks take, each broken one once."""
        store = self._client.store.alerts
        sent = 0
        failed: dict[str, str] = {}
        for _ in range(_MOST):
            whole = tuple(name for name in self._sinks if name not in failed)
            # One at a time: what is taken and not begun would wait a minute if this process dies.
            due = store.due(whole, _TAKEN, 1) if whole and not self._stopping() else []
            if not due:
                break
            error = self._hand_over(due[0])
            if error is None:
                sent += 1
            elif error:
                # Its time is everybody's: what else goes there waits for the next round.
                failed[due[0].sink] = error
        return Sent(sent, tuple(failed.values()))

    def _hand_over(self, delivery: AlertDelivery) -> str | None:
        """None: it was taken; "": there is nothing to say any more; else why it was not taken."""
        store, change = self._client.store.alerts, delivery.change.id
        if delivery.tries > 1 and self._is_overtaken(delivery):
            store.unsent(change, delivery.sink, "a later change was told first", None)
            return ""
        try:
            self._sinks[delivery.sink].send(self.notification(delivery))
        except SinkFailed as error:
            said = str(error)
        except Exception as error:  # a sink of the user's own may raise anything
            said = f"{type(error).__name__}: {error}"
        else:
            store.sent(change, delivery.sink)
            return None
        final = delivery.tries >= _MOST_TRIES
        wait = None if final else _WAITS[min(delivery.tries, len(_WAITS)) - 1]
        store.unsent(change, delivery.sink, said[:500], wait)
        self._client.tell(AlertNotSent(delivery.sink, said[:500], final))
        return f"{delivery.sink}: {said}"

    def _is_overtaken(self, delivery: AlertDelivery) -> bool:
        """Whether its sink knows of the alert's present state: an old one after that would mislead."""
        store, change = self._client.store.alerts, delivery.change
        latest = next(
            (one.change for one in store.records() if (one.rule, one.target) == (change.rule, change.target)),
            change.id,
        )
        return latest != change.id and any(
            other.sink == delivery.sink and other.state == "sent" for other in store.deliveries(latest)
        )

    def notification(self, delivery: AlertDelivery) -> Notification:
        """The same words and the same id for every try."""
        change = delivery.change
        owner = change.value.get("owner")
        where = without_password(self._client.settings.url)
        # Two stores count their changes alike.
        mark = hashlib.sha256(f"{where}\0{self._client.settings.schema}".encode()).hexdigest()[:12]
        return Notification(
            f"alert-{change.id}-{mark}",
            change.rule,
            change.target,
            change.state,
            change.at,
            str(change.value.get("text", "")),
            owner if isinstance(owner, str) else None,
            where,
        )
