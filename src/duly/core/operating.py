"""What is kept of those who operate a store, as data: tokens, HTTP answers, triage, the audit, alerts, tallies.

Plain immutable records; knows no store and no clock. All times are aware, in UTC.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

TokenState = Literal["live", "expired", "revoked"]
TriageState = Literal["new", "acknowledged", "fixed"]
AlertStateName = Literal["clear", "firing"]
DeliveryState = Literal["due", "sent", "given_up"]

TOUCH_EVERY: Final = timedelta(minutes=1)
"""That a token was used is written so often at most."""
TALLY_MINUTES: Final = timedelta(hours=1)
"""Tallies by the minute are kept so long,"""
TALLY_HOURS: Final = timedelta(days=14)
"""and those by the hour so long."""
TALLY_LAG: Final = timedelta(seconds=15)
"""A minute is folded so long after its end: what commits later is not in its tally."""
TALLY_CHUNK: Final = timedelta(minutes=5)
"""So much is folded at once."""
_EDITED: Final = re.compile(r"(?:^|; )edited: it runs again as job ([0-9]+)$")


class TokenRecord(Struct, frozen=True):
    """An access token, without its text: only a digest of that is kept."""

    id: int
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    by: str
    state: TokenState = "live"
    """By the database's clock, when it was read."""
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    """To the minute."""
    revoked_at: datetime | None = None


class SecretKey(Struct, frozen=True):
    """A key of this store for one kind of signature; its text stays out of logs and messages."""

    kind: str
    id: int
    """Counts from 1 in its kind."""
    value: bytes
    created_at: datetime
    retired_at: datetime | None = None
    """Since then it signs nothing new, but still proves what it signed."""

    def __repr__(self) -> str:
        return f"SecretKey(kind={self.kind!r}, id={self.id})"


class AnswerAsk(Struct, frozen=True):
    """A request that names an idempotency key."""

    key: bytes
    """A digest of the caller's token and its key."""
    token: int
    body_hash: bytes
    hold: timedelta
    """For so long it counts as in flight unless it is filled."""


class KeptReply(Struct, frozen=True):
    """What the first request of a key was answered."""

    key: bytes
    token: int
    body_hash: bytes
    at: datetime
    expires_at: datetime
    status: int = 0
    body: bytes | None = None
    """None while that request is in flight."""


class FilledReply(Struct, frozen=True):
    """The answer to a request whose key was taken."""

    key: bytes
    status: int
    body: bytes
    keep: timedelta


class DeadMark(Struct, frozen=True):
    """What people say about a group of dead letters."""

    fingerprint: str
    """"" for those without an error."""
    queue: str
    task: str
    state: TriageState
    by: str
    at: datetime
    owner: str | None = None
    note: str = ""
    regressed_at: datetime | None = None
    """When the first one died after the group was fixed; None once its state is marked again."""


class RedriveOutlook(Struct, frozen=True):
    """What a redrive of dead letters would meet."""

    count: int
    """So many can run again,"""
    oldest: datetime | None = None
    """the first of which died then."""
    priority: int | None = None
    """The least urgent of theirs; None without any."""
    twins: int = 0
    """So many have a unique key that a live job holds: they would stay dead while it does."""


def edited_note(successor: int) -> str:
    """What a dead letter says once an edited job runs in its place."""
    return f"edited: it runs again as job {successor}"


def successor_of(note: str | None) -> int | None:
    """The job that runs in the place of the dead letter with this note."""
    found = _EDITED.search(note) if note else None
    return None if found is None else int(found[1])


class AuditEntry(Struct, frozen=True):
    """One act. Never changed."""

    id: int
    at: datetime
    actor: str
    verb: str
    target: str
    """Such as `queue:mail`, `schedule:nightly`, `job:17`; "" for acts on several jobs, whose ids `detail` names."""
    reason: str
    detail: str = "{}"
    """JSON, byte for byte as it was written."""


class AuditSeal(Struct, frozen=True):
    """That a batch of entries stood there at a time, chained to the batch before."""

    id: int
    first: int
    """The lowest id of its entries,"""
    last: int
    """and the highest; others between them may belong to a later seal."""
    count: int
    digest: bytes
    previous: bytes
    at: datetime


class AuditVerdict(Struct, frozen=True):
    """What reading the whole audit has shown."""

    entries: int
    """Sealed and unbroken."""
    seals: int
    unsealed: int
    """Written since the last seal."""
    head: bytes
    """The last digest; noted elsewhere it proves later that nothing before it was rewritten."""
    faults: tuple[str, ...] = ()
    """What does not fit, one sentence each; () when all does."""


class AlertRecord(Struct, frozen=True):
    """Where one rule stands for one target."""

    rule: str
    target: str
    state: AlertStateName
    change: int
    """The id of its last change; 0 before the first."""
    since: datetime | None = None
    """Since when the condition disagrees with the state; None while it agrees."""
    changed_at: datetime | None = None
    value: Mapping[str, object] = {}


class AlertChange(Struct, frozen=True):
    """One decided change. Its id never names another one."""

    id: int
    rule: str
    target: str
    state: AlertStateName
    at: datetime
    value: Mapping[str, object] = {}


class AlertDelivery(Struct, frozen=True):
    """A change on its way to one sink."""

    change: AlertChange
    sink: str
    state: DeliveryState
    tries: int
    next_at: datetime
    last_error: str | None = None


class Silence(Struct, frozen=True):
    """Nobody is told of this rule for this target; "*" stands for any."""

    id: int
    rule: str
    target: str
    by: str
    reason: str
    at: datetime
    until: datetime


class Tally(Struct, frozen=True):
    """What happened to the jobs of one task in one queue within a minute, an hour, or longer."""

    queue: str
    task: str
    at: datetime
    """Its beginning."""
    completed: int = 0
    skipped: int = 0
    dead: int = 0
    cancelled: int = 0
    shed: int = 0
    failed: int = 0
    """Attempts that failed, also those before a success."""
    lost: int = 0
    """Attempts whose worker vanished."""
    timeout: int = 0
    """Of those that failed, attempts that ran out of their time."""
    redelivered: int = 0
    """Attempts that were interrupted after they had begun, to begin again elsewhere."""
    redriven: int = 0
    """Jobs that somebody made run again."""
    suppressed: int = 0
    """Copies that were skipped: stale, or replaced by a newer one."""
    waited: timedelta = timedelta(0)
    """From enqueue to the start of the last attempt, of all completed together."""
    ran: timedelta = timedelta(0)
    """The last attempts of all completed together."""
