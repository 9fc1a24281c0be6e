"""The alert rules: each a pure function of a Snapshot that names what is wrong, and the hysteresis around all of them.

Values in, findings and steps out; knows no store, no sink and no clock.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

from msgspec import Struct

from duly.core import defaults
from duly.core.bounds import Bound
from duly.core.lateness import late_text
from duly.core.operating import AlertRecord
from duly.core.plan import full_in, spelled

Rule = Literal[
    "dead-letter",
    "dead-purge",
    "late",
    "rising",
    "near-bound",
    "disk",
    "no-worker",
    "stalled",
    "hot-key",
    "breaker",
    "lost",
]
RULES: Final[tuple[Rule, ...]] = get_args(Rule)
STORE: Final = "store"
_RISING_WINDOW: Final = timedelta(minutes=10)
_NOISE: Final = 0.02
"""A slope below this share of the arrivals is the noise of their measurement."""
_IDLE_STALL: Final = timedelta(minutes=2)
"""A worker that holds nothing claims at least every few seconds."""
_NOW: Final = timedelta(0)


class Thresholds(Struct, frozen=True):
    """When the rules fire for one queue, or for all. Spans and numbers, each with its default."""

    off: frozenset[Rule] = frozenset()
    dead_within: timedelta = defaults.ALERT_DEAD_WITHIN
    purge_notice: timedelta = defaults.PURGE_NOTICE
    late_for: timedelta = defaults.ALERT_LATE_FOR
    rising_for: timedelta = defaults.ALERT_RISING_FOR
    rising_jobs: int = defaults.ALERT_RISING_JOBS
    bound_share: float = defaults.ALERT_BOUND_SHARE
    full_within: timedelta = defaults.ALERT_FULL_WITHIN
    disk_within: timedelta = defaults.ALERT_DISK_WITHIN
    no_worker_for: timedelta = defaults.ALERT_NO_WORKER_FOR
    stalled_after: timedelta = defaults.ALERT_STALLED_AFTER
    hot_share: float = defaults.ALERT_HOT_SHARE
    hot_jobs: int = defaults.ALERT_HOT_JOBS
    lost: int = defaults.ALERT_LOST
    clear_after: timedelta = defaults.ALERT_CLEAR_AFTER
    sinks: tuple[str, ...] | None = None
    """By name; None: all there are."""


class QueueSeen(Struct, frozen=True):
    """One queue."""

    name: str
    owner: str | None = None
    ready: int = 0
    running: int = 0
    blocked: int = 0
    oldest: timedelta | None = None
    in_per_s: float | None = None
    out_per_s: float | None = None
    slope_per_s: float | None = None
    workers: int = 0
    paused: bool = False
    bound: Bound | None = None
    wait_target: timedelta | None = None
    health: str = ""
    """The sentence that `duly status` says."""


class DeadSeen(Struct, frozen=True):
    """One group of dead letters."""

    queue: str
    task: str
    fingerprint: str
    count: int
    last: datetime
    error: str


class PurgeSeen(Struct, frozen=True):
    """Dead letters that will be deleted."""

    queue: str
    count: int
    since: datetime


class WorkerSeen(Struct, frozen=True):
    """One live worker process."""

    id: int
    place: str
    queues: tuple[str, ...]
    running: int
    still: timedelta | None
    """Since it last ended an attempt or found nothing to do; None: it has not begun."""


class KeySeen(Struct, frozen=True):
    """One ordering key with work."""

    queue: str
    tenant: str
    key: str
    waiting: int


class BreakerSeen(Struct, frozen=True):
    """A resource whose breaker is not closed."""

    name: str
    state: str
    waiting: int


class StorageSeen(Struct, frozen=True):
    """The room of the store."""

    text: str
    filled: float = 0.0
    """1.0: its budget is spent; 0 without one."""
    full_in: timedelta | None = None


class Snapshot(Struct, frozen=True):
    """Everything the rules look at, of one moment."""

    now: datetime
    queues: tuple[QueueSeen, ...] = ()
    dead: tuple[DeadSeen, ...] = ()
    purges: tuple[PurgeSeen, ...] = ()
    workers: tuple[WorkerSeen, ...] = ()
    keys: tuple[KeySeen, ...] = ()
    breakers: tuple[BreakerSeen, ...] = ()
    lost: Mapping[str, int] = {}
    """Queue -> attempts whose worker vanished lately."""
    storage: StorageSeen | None = None


class Finding(Struct, frozen=True):
    """A condition that holds."""

    rule: Rule
    target: str
    """`queue:mail`, `worker:17`, `resource:smtp`, `store`."""
    text: str
    holds_for: timedelta = _NOW
    """For so long without a break, until it fires."""
    clear_after: timedelta = defaults.ALERT_CLEAR_AFTER
    queue: str | None = None
    sinks: tuple[str, ...] | None = None


Policies = Callable[[str | None], Thresholds]
"""The thresholds of a queue; None: of what belongs to no queue."""


def judge(seen: Snapshot, policies: Policies) -> list[Finding]:
    """Every condition that holds now, by rule and target; one for each pair."""
    found: dict[tuple[str, str], Finding] = {}
    for rule, look in _LOOKS.items():
        for finding in look(seen, policies):
            if rule not in policies(finding.queue).off:
                found.setdefault((rule, finding.target), finding)
    return list(found.values())


# One function for each rule.


def dead_letters(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """Dead letters that arrived lately, of a queue."""
    for queue in seen.queues:
        policy = policies(queue.name)
        groups = [
            group
            for group in seen.dead
            if group.queue == queue.name and seen.now - group.last < policy.dead_within
        ]
        if not groups:
            continue
        latest = max(groups, key=lambda group: group.last)
        number = sum(group.count for group in groups)
        letters = "1 dead letter" if number == 1 else f"{number:,} dead letters"
        kinds = "" if len(groups) == 1 else f" of {len(groups)} kinds"
        yield _of_queue(
            "dead-letter",
            queue,
            policy,
            f"{letters}{kinds}, the latest of {latest.task}: {_short(latest.error)}. "
            f"duly dead groups --queue {queue.name}",
            # The window is the hysteresis.
            clear_after=_NOW,
        )


def purges(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """Dead letters that will be deleted soon."""
    queues = {queue.name: queue for queue in seen.queues}
    for purge in seen.purges:
        policy = policies(purge.queue)
        if purge.since - seen.now > policy.purge_notice:
            continue
        letters = "1 dead letter" if purge.count == 1 else f"{purge.count:,} dead letters"
        yield _of_queue(
            "dead-purge",
            queues.get(purge.queue, QueueSeen(purge.queue)),
            policy,
            f"{letters} will be deleted from {purge.since:%Y-%m-%d %H:%M} UTC on. "
            f"duly dead groups --queue {purge.queue}",
        )


def late(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """The oldest ready job has waited longer than the queue's wait_target."""
    for queue in seen.queues:
        text = late_text(queue.wait_target, queue.oldest)
        if text is not None:
            policy = policies(queue.name)
            yield _of_queue("late", queue, policy, f"{text}. {_healthy(queue)}", holds_for=policy.late_for)


def rising(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """More jobs wait from minute to minute."""
    for queue in seen.queues:
        policy, slope = policies(queue.name), queue.slope_per_s
        if slope is None or slope <= _NOISE * (queue.in_per_s or 0.0) or queue.ready < policy.rising_jobs:
            continue
        more = slope * _RISING_WINDOW.total_seconds()
        if more >= policy.rising_jobs:
            yield _of_queue(
                "rising",
                queue,
                policy,
                f"rises by {more:,.0f} jobs in {spelled(_RISING_WINDOW)}: {_healthy(queue)}",
                holds_for=policy.rising_for,
            )


def near_bound(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """A queue is nearly full, or will be within the hour."""
    for queue in seen.queues:
        if queue.bound is None:
            continue
        policy = policies(queue.name)
        text = _near(queue, queue.bound, policy)
        if text is not None:
            yield _of_queue("near-bound", queue, policy, text, holds_for=policy.late_for)


def disk(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """The store, or its disk, will be full within a day."""
    storage, policy = seen.storage, policies(None)
    if storage is None:
        return
    soon = storage.full_in is not None and storage.full_in <= policy.disk_within
    if soon or storage.filled >= policy.bound_share:
        when = ""
        if soon and storage.full_in is not None:
            when = (
                f"; full in {spelled(storage.full_in)} at the present pace" if storage.full_in else "; full"
            )
        yield Finding(
            "disk", STORE, f"{storage.text}{when}", policy.late_for, policy.clear_after, sinks=policy.sinks
        )


def no_worker(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """Jobs wait, and nobody serves the queue."""
    for queue in seen.queues:
        if queue.workers or queue.paused or not (queue.ready or queue.running):
            continue
        policy = policies(queue.name)
        yield _of_queue("no-worker", queue, policy, _healthy(queue), holds_for=policy.no_worker_for)


def stalled(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """A worker beats, but has ended nothing for longer than any attempt may take, or holds and claims nothing."""
    for worker in seen.workers:
        waits = [queue for queue in seen.queues if queue.name in worker.queues and queue.ready]
        # The most patient of its queues decides: any of its jobs may be of that one.
        policies_here = [policies(name) for name in worker.queues] or [policies(None)]
        policy = max(policies_here, key=lambda one: one.stalled_after)
        most = policy.stalled_after if worker.running else _IDLE_STALL
        if worker.still is None or worker.still < most or not (worker.running or waits):
            continue
        held = "1 job" if worker.running == 1 else f"{worker.running} jobs"
        yield Finding(
            "stalled",
            f"worker:{worker.id}",
            f"worker {worker.id} ({worker.place}) beats, and has ended nothing for {spelled(worker.still)} while it "
            f"holds {held}. duly workers show {worker.id}",
            _NOW,
            policy.clear_after,
            sinks=policy.sinks,
        )


def hot_keys(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """One ordering key is most of what waits: its jobs run one at a time, whatever is added."""
    for queue in seen.queues:
        keys = [key for key in seen.keys if key.queue == queue.name]
        if not keys:
            continue
        policy, hot = policies(queue.name), max(keys, key=lambda key: key.waiting)
        whole = max(queue.ready + queue.blocked, hot.waiting)
        if hot.waiting >= policy.hot_jobs and hot.waiting > policy.hot_share * whole:
            tenant = f" of tenant {hot.tenant}" if hot.tenant else ""
            yield _of_queue(
                "hot-key",
                queue,
                policy,
                f"the ordering key {hot.key}{tenant} has {hot.waiting:,} of {whole:,} waiting jobs, which run one at a "
                "time. Split it, as by a part of the key",
                holds_for=policy.rising_for,
            )


def breakers(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """A resource is left alone because too many calls of it failed."""
    policy = policies(None)
    for breaker in seen.breakers:
        waits = "1 job waits" if breaker.waiting == 1 else f"{breaker.waiting:,} jobs wait"
        yield Finding(
            "breaker",
            breaker.name,
            f"the breaker of {breaker.name} is {breaker.state}: too many calls failed, {waits}. "
            f"duly why {breaker.name}",
            _NOW,
            policy.clear_after,
            sinks=policy.sinks,
        )


def lost(seen: Snapshot, policies: Policies) -> Iterator[Finding]:
    """Workers vanished with jobs in their hands."""
    queues = {queue.name: queue for queue in seen.queues}
    for name, number in seen.lost.items():
        policy = policies(name)
        if number >= policy.lost:
            attempts = "1 attempt" if number == 1 else f"{number:,} attempts"
            yield _of_queue(
                "lost",
                queues.get(name, QueueSeen(name)),
                policy,
                f"{attempts} lost their worker within {spelled(defaults.ALERT_LOST_WITHIN)}; their jobs run again. "
                f"duly jobs --queue {name}",
            )


_LOOKS: Final[dict[Rule, Callable[[Snapshot, Policies], Iterable[Finding]]]] = {
    "dead-letter": dead_letters,
    "dead-purge": purges,
    "late": late,
    "rising": rising,
    "near-bound": near_bound,
    "disk": disk,
    "no-worker": no_worker,
    "stalled": stalled,
    "hot-key": hot_keys,
    "breaker": breakers,
    "lost": lost,
}


# Hysteresis.

Doing = Literal["nothing", "wait", "fire", "clear"]


class Step(Struct, frozen=True):
    """What to do about one rule and target. `wait`: remember `since`, change nothing."""

    doing: Doing
    since: datetime | None = None


NOTHING: Final = Step("nothing")


def step(record: AlertRecord | None, finding: Finding | None, now: datetime, clear_after: timedelta) -> Step:
    """Fire once the condition has held without a break for its time, clear once it has not for `clear_after`."""
    firing = record is not None and record.state == "firing"
    since = None if record is None else record.since
    if (finding is not None) == firing:
        # As it should be; a doubt from before is over.
        return NOTHING if since is None else Step("wait", None)
    began = now if since is None else since
    needed = clear_after if finding is None else finding.holds_for
    if now - began >= needed:
        return Step("clear" if finding is None else "fire")
    return NOTHING if since is not None else Step("wait", now)


def _of_queue(
    rule: Rule,
    queue: QueueSeen,
    policy: Thresholds,
    text: str,
    *,
    holds_for: timedelta = _NOW,
    clear_after: timedelta | None = None,
) -> Finding:
    after = policy.clear_after if clear_after is None else clear_after
    return Finding(rule, f"queue:{queue.name}", text, holds_for, after, queue.name, policy.sinks)


def _near(queue: QueueSeen, bound: Bound, policy: Thresholds) -> str | None:
    if bound.max_depth is not None and queue.ready >= policy.bound_share * bound.max_depth:
        return f"{queue.ready:,} of max_depth={bound.max_depth:,} jobs wait. {_healthy(queue)}"
    left = full_in(queue.ready, queue.slope_per_s, bound)
    if left is not None and left <= policy.full_within and queue.ready >= policy.rising_jobs:
        return f"full in {spelled(left)} at this slope. {_healthy(queue)}"
    if (
        bound.max_age is not None
        and queue.oldest is not None
        and queue.oldest >= policy.bound_share * bound.max_age
    ):
        return f"its oldest job has waited {spelled(queue.oldest)} of max_age={spelled(bound.max_age)}"
    return None


def _healthy(queue: QueueSeen) -> str:
    return queue.health or f"duly why {queue.name}"


def _short(error: str) -> str:
    flat = " ".join(error.split())
    return flat if len(flat) <= 200 else f"{flat[:199]}…"
