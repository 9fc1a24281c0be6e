"""Telling whoever asked that a job has ended: a signed message to a URL, or what the app does for mail and push.

Done by a job of its own, which looks at the other one from time to time: whatever ends that one, an outage and a
restart included, is told at least once. Knows no page and no route.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from duly.client.client import Client
from duly.client.enqueued import Enqueued
from duly.client.job import Job
from duly.client.queue import Queue
from duly.client.ticketing import TicketReader, clock_of
from duly.core.defaults import QUEUE
from duly.core.endings import Dead, Retry, Skip, Snooze
from duly.core.errors import NotFound, UsageError
from duly.core.names import check_name
from duly.core.ticket_status import TicketState, TicketStatus
from duly.core.webhook_signing import read_secret, signed_headers

if TYPE_CHECKING:
    from duly.client.task import Task, TaskDecorator

TASK: Final = "duly.notify"
URL: Final = "url"
"""The channel of signed messages."""
SOONEST: Final = timedelta(seconds=1)
LATEST: Final = timedelta(minutes=1)
LATEST_OF_LONG: Final = timedelta(minutes=10)
"""Between two looks at a job that has been going for more than a day."""
MAX_TO: Final = 500

Tell = Callable[[str, TicketStatus], Awaitable[None] | None]
N = TypeVar("N", bound=Tell)


class Channel(Struct, frozen=True):
    """One way to be told, as a page offers it."""

    name: str
    label: str
    tell: Tell
    kind: str = "text"
    """Of its HTML input: text, email, tel."""


class _Declares(Protocol):
    client: Client

    def task(self, *, name: str, queue: str | Queue, timeout: str, attempts: int) -> TaskDecorator: ...


class Notices:
    """Made by `App.notifications`."""

    def __init__(
        self, app: _Declares, secrets: tuple[str, ...], queue: str | Queue, *, private: bool
    ) -> None:
        self._client = app.client
        self._reader = TicketReader(app.client)
        self._secrets = secrets
        self._private = private
        self.channels: dict[str, Channel] = {}
        self.task: Task[[str, str, str], Any] = self._declare(app, queue)

    @property
    def takes_urls(self) -> bool:
        """Whether signed messages are sent; they need a secret."""
        return bool(self._secrets)

    def channel(self, name: str, *, label: str, kind: str = "text") -> Callable[[N], N]:
        """Register a function `(to, status)` that tells one person; a ticket's page asks for `to` under `label`.

        `kind` is what they type: text, email, tel. The function runs in a worker, at least once: let it hand
        `status.reference` on as an idempotency key. What it raises is tried again.
        """
        check_name("step", name)
        if name == URL or name in self.channels:
            raise UsageError(f"a channel is named {name!r} already; give this one another name")
        if kind not in {"text", "email", "tel"}:
            raise UsageError(f"kind={kind!r} is none of text, email, tel")

        def register(tell: N) -> N:
            self.channels[name] = Channel(name, label, tell, kind)
            return tell

        return register

    def enqueue(self, ticket: str, to: str, *, channel: str = URL, connection: Any = None) -> Enqueued[Any]:
        """Tell `to` when the ticket's job has ended; blocks for a round trip. Asked twice, it is told once.

        UsageError for a URL that is none to be told at, and for a channel that there is not; KeyReused when this
        channel tells another address already.
        """
        return self._using(ticket, to, channel, connection).enqueue(ticket, channel, to)

    async def aenqueue(
        self, ticket: str, to: str, *, channel: str = URL, connection: Any = None
    ) -> Enqueued[Any]:
        """As `enqueue`, without blocking the loop."""
        return await self._using(ticket, to, channel, connection).aenqueue(ticket, channel, to)

    def check(self, to: str, channel: str = URL) -> str:
        """The address, if something can be told there as far as its text says. UsageError else."""
        if channel == URL:
            if not self._secrets:
                raise UsageError(
                    "no message is sent to URLs here; write jobs.notifications(secrets=['env:NAME'])"
                )
            # What speaks TLS is loaded by who needs it.
            from duly.client.outgoing import check_url

            return check_url(to, private=self._private)
        if channel not in self.channels:
            raise UsageError(
                f"there is no channel {channel!r:.60}; there are {', '.join(self.channels) or 'none'}"
            )
        if not to.strip() or len(to) > MAX_TO or not to.isprintable():
            raise UsageError(f"an address is text of up to {MAX_TO} characters, not {to!r:.60}")
        return to

    def _using(self, ticket: str, to: str, channel: str, connection: Any) -> Task[[str, str, str], Any]:
        self.check(to, channel)
        # A page lets nobody tell more than one address of each kind.
        once = f"{ticket}\n{channel}\n{to if channel == URL else ''}"
        digest = sha256(once.encode()).hexdigest()
        return self.task.using(idempotency_key=f"notify:{digest}", connection=connection)

    def _declare(self, app: _Declares, queue: str | Queue) -> Task[[str, str, str], Any]:
        notices = self

        async def notify(job: Job, ticket: str, channel: str, to: str) -> str:
            return await notices._notify(job, ticket, channel, to)

        return app.task(name=TASK, queue=queue, timeout="1m", attempts=12)(notify)

    async def _notify(self, job: Job, ticket: str, channel: str, to: str) -> str:
        try:
            status = await self._reader.alook(await self._reader.aopen(ticket))
        except NotFound:
            raise Dead("its ticket cannot be read: give servers and workers the same DULY_SECRET") from None
        if status.state is TicketState.expired:
            raise Skip("its ticket is no longer valid")
        if status.state is TicketState.gone and status.finished_at is None:
            raise Skip("the job was never stored, or is no longer kept")
        if not status.ended:
            raise Snooze(self._wait(job), f"the job is {status.state}")
        if channel == URL:
            return await self._send(job, status, to)
        known = self.channels.get(channel)
        if known is None:
            raise Dead(f"there is no channel {channel!r} any more")
        if iscoroutinefunction(known.tell):
            await known.tell(to, status)
        else:
            await asyncio.to_thread(known.tell, to, status)
        return str(status.state)

    def _wait(self, job: Job) -> timedelta:
        """A tenth of the time since it was asked for: late by a tenth at most, and cheap for what takes days."""
        now = clock_of(self._client)
        age = now - (job.enqueued_at or now)
        longest = LATEST if age < timedelta(days=1) else LATEST_OF_LONG
        return min(max(age / 10, SOONEST), longest)

    async def _send(self, job: Job, status: TicketStatus, url: str) -> str:
        from duly.client.outgoing import NotDelivered, Refused, post

        at = status.finished_at or status.asked_at
        told = {"type": f"job.{status.state}", "timestamp": at, "data": status}
        body = msgspec.json.encode(told)
        keys = [read_secret(_value(secret), "a secret of notifications") for secret in self._secrets]
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "duly",
            **signed_headers(keys, f"msg_{job.id}", datetime.now(UTC), body),
        }
        try:
            receipt = await asyncio.to_thread(post, url, body, headers, private=self._private)
        except (Refused, UsageError) as error:
            raise Dead(str(error)) from None
        except NotDelivered as error:
            raise Retry(reason=str(error)) from None
        if 200 <= receipt.status < 300:
            return str(receipt.status)
        if receipt.status == 410:
            raise Dead("the receiver answers 410: it wants no more messages")
        raise Retry(receipt.retry_after, reason=f"the receiver answers {receipt.status}")


def read_secrets(secrets: Iterable[str]) -> tuple[str, ...]:
    """Secrets, or where they stand; those in code are checked at once, those of the environment when they are used."""
    if isinstance(secrets, str):
        raise UsageError("secrets is a list; write secrets=['env:NOTIFY_SECRET']")
    found = tuple(secrets)
    for secret in found:
        if not isinstance(secret, str):
            raise UsageError("a secret is text: 'env:NOTIFY_SECRET', or 'whsec_…'")
        if not secret.startswith("env:"):
            read_secret(secret, "a secret of notifications")
    return found


def _value(secret: str) -> str:
    if not secret.startswith("env:"):
        return secret
    name = secret.removeprefix("env:")
    value = os.environ.get(name, "")
    if not value:
        raise UsageError(f"notifications are signed with the variable {name}, which is not set here")
    return value


class Notifying:
    """The part of `App` that tells people."""

    notices: Notices | None = None
    """What `notifications` has made."""

    def notifications(
        self, *, secrets: Iterable[str] = (), queue: str | Queue = QUEUE, private: bool = False
    ) -> Notices:
        """Let holders of tickets be told when their job has ended; workers need the declaration, too.

        Args:
            secrets: what messages to URLs are signed with by Standard Webhooks, each "env:NAME" or "whsec_…"; every
                one signs, so that receivers may change theirs. Without any, no URL is told.
            queue: where the jobs wait that tell.
            private: lets messages go to http:// and to addresses of this machine and its network, for development.

        """
        if self.notices is not None:
            raise UsageError("jobs.notifications() was called before; keep what it returned")
        made = Notices(cast("_Declares", self), read_secrets(secrets), queue, private=private)
        self.notices = made
        return made


__all__ = ["Channel", "Notices", "Notifying"]
