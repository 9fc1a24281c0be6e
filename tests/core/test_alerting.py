"""The alert rules on snapshots written by hand, each true and just not true, and the hysteresis as properties."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duly.core import defaults
from duly.core.alerting import (
    RULES,
    BreakerSeen,
    DeadSeen,
    Finding,
    KeySeen,
    PurgeSeen,
    QueueSeen,
    Snapshot,
    StorageSeen,
    Thresholds,
    WorkerSeen,
    judge,
    step,
)
from duly.core.bounds import Bound
from duly.core.operating import AlertRecord
from tests.core.handlers import FEW

NOW = datetime(2030, 5, 1, 9, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
USUAL = Thresholds()
ANY = ("default", "mail")


def usual(queue: str | None) -> Thresholds:
    return USUAL


def queue(**seen: object) -> Snapshot:
    """A snapshot of one queue that somebody serves."""
    return Snapshot(NOW, queues=(QueueSeen("mail", **{"workers": 1, **seen}),))  # type: ignore[arg-type]


def dead(ago: timedelta) -> Snapshot:
    group = DeadSeen("mail", "send", "a91f", 3, NOW - ago, "SMTPServerDisconnected: closed\nby peer")
    return Snapshot(NOW, queues=(QueueSeen("mail", owner="growth@shop", workers=1),), dead=(group,))


def purge(ahead: timedelta) -> Snapshot:
    return Snapshot(NOW, purges=(PurgeSeen("mail", 12, NOW + ahead),))


def worker(running: int, still: timedelta | None, ready: int = 0) -> Snapshot:
    seen = WorkerSeen(17, "web-1:4711", ("mail",), running, still)
    return Snapshot(NOW, queues=(QueueSeen("mail", ready=ready, workers=1),), workers=(seen,))


def key(waiting: int, ready: int) -> Snapshot:
    hot = KeySeen("mail", "", "order:7", waiting)
    return Snapshot(
        NOW,
        queues=(QueueSeen("mail", ready=ready, blocked=waiting, workers=1),),
        keys=(hot, KeySeen("mail", "", "order:8", 1)),
    )


@pytest.mark.parametrize(
    ("rule", "holds", "well"),
    [
        ("dead-letter", dead(9 * MINUTE), dead(10 * MINUTE)),
        ("dead-purge", purge(timedelta(days=6)), purge(timedelta(days=8))),
        (
            "late",
            queue(ready=1, oldest=31 * SECOND, wait_target=30 * SECOND),
            queue(ready=1, oldest=30 * SECOND, wait_target=30 * SECOND),
        ),
        (
            "rising",
            queue(ready=200, in_per_s=5.0, out_per_s=4.8, slope_per_s=0.2),
            queue(ready=200, in_per_s=5.0, out_per_s=4.9, slope_per_s=0.1),
        ),
        (
            "rising",
            queue(ready=200, in_per_s=9.0, slope_per_s=0.2),
            # The same slope of a queue to which a thousand come a second is noise.
            queue(ready=200, in_per_s=1_000.0, slope_per_s=0.2),
        ),
        (
            "near-bound",
            queue(ready=80, bound=Bound(max_depth=100)),
            queue(ready=79, bound=Bound(max_depth=100)),
        ),
        (
            "near-bound",
            queue(ready=1_000, slope_per_s=2.5, bound=Bound(max_depth=10_000)),
            queue(ready=1_000, slope_per_s=2.4, bound=Bound(max_depth=10_000)),
        ),
        (
            "near-bound",
            queue(ready=1, oldest=48 * SECOND, bound=Bound(max_age=MINUTE)),
            queue(ready=1, oldest=47 * SECOND, bound=Bound(max_age=MINUTE)),
        ),
        (
            "disk",
            Snapshot(NOW, storage=StorageSeen("the store takes 9 GiB", 0.1, 24 * HOUR)),
            Snapshot(NOW, storage=StorageSeen("the store takes 9 GiB", 0.1, 25 * HOUR)),
        ),
        (
            "disk",
            Snapshot(NOW, storage=StorageSeen("the store takes 9 GiB", 0.8)),
            Snapshot(NOW, storage=StorageSeen("the store takes 9 GiB", 0.79)),
        ),
        ("no-worker", queue(ready=1, workers=0), queue(ready=0, workers=0)),
        ("no-worker", queue(ready=1, workers=0), queue(ready=1, workers=0, paused=True)),
        ("stalled", worker(1, 20 * MINUTE), worker(1, 19 * MINUTE)),
        ("stalled", worker(0, 2 * MINUTE, ready=1), worker(0, 2 * MINUTE, ready=0)),
        ("hot-key", key(300, 1_000), key(200, 1_000)),
        ("hot-key", key(100, 0), key(99, 0)),
        (
            "breaker",
            Snapshot(NOW, breakers=(BreakerSeen("resource:smtp", "open", 7),)),
            Snapshot(NOW),
        ),
        ("lost", Snapshot(NOW, lost={"mail": 3}), Snapshot(NOW, lost={"mail": 2})),
    ],
)
def test_a_rule_finds_its_condition_and_nothing_less(rule: str, holds: Snapshot, well: Snapshot) -> None:
    found = [finding for finding in judge(holds, usual) if finding.rule == rule]

    assert len(found) == 1
    assert rule not in {finding.rule for finding in judge(well, usual)}


def test_every_rule_is_tried_above() -> None:
    (mark,) = test_a_rule_finds_its_condition_and_nothing_less.pytestmark  # type: ignore[attr-defined]

    assert {case[0] for case in mark.args[1]} == set(RULES)


def test_a_finding_says_what_is_so_and_what_to_do() -> None:
    (finding,) = judge(dead(MINUTE), usual)

    assert (finding.target, finding.queue) == ("queue:mail", "mail")
    assert finding.text == (
        "3 dead letters, the latest of send: SMTPServerDisconnected: closed by peer. duly dead groups --queue mail"
    )


def test_a_rule_that_is_off_for_a_queue_is_not_looked_at_there() -> None:
    snapshot = Snapshot(NOW, queues=(QueueSeen("mail", ready=1), QueueSeen("news", ready=1)))

    def without(queue: str | None) -> Thresholds:
        return Thresholds(off=frozenset({"no-worker"})) if queue == "mail" else USUAL

    assert [finding.target for finding in judge(snapshot, without)] == ["queue:news"]


def test_the_thresholds_of_a_queue_are_its_own() -> None:
    snapshot = queue(ready=60, bound=Bound(max_depth=100))

    assert judge(snapshot, usual) == []
    assert [found.rule for found in judge(snapshot, lambda _: Thresholds(bound_share=0.6))] == ["near-bound"]


def test_the_stalling_of_a_worker_takes_as_long_as_its_most_patient_queue_says() -> None:
    seen = WorkerSeen(1, "a:1", ("mail", "video"), 1, 30 * MINUTE)
    snapshot = Snapshot(NOW, workers=(seen,))

    def patient(queue: str | None) -> Thresholds:
        return Thresholds(stalled_after=3 * HOUR) if queue == "video" else USUAL

    assert judge(snapshot, patient) == []
    assert [found.rule for found in judge(snapshot, usual)] == ["stalled"]


def test_an_attempt_cannot_take_as_long_as_a_stalled_worker() -> None:
    assert defaults.ALERT_STALLED_AFTER > defaults.TIMEOUT
    assert USUAL.purge_notice <= defaults.PURGE_NOTICE


@dataclass
class Story:
    """One rule for one target, looked at again and again."""

    record: AlertRecord | None = None

    def look(self, holds: bool, now: datetime, holds_for: timedelta, clear_after: timedelta) -> str:
        finding = Finding("late", "queue:mail", "late", holds_for, clear_after) if holds else None
        before = self.record or AlertRecord("late", "queue:mail", "clear", 0)
        decided = step(self.record, finding, now, clear_after)
        match decided.doing:
            case "wait":
                self.record = replace(before, since=decided.since)
            case "fire":
                self.record = AlertRecord("late", "queue:mail", "firing", before.change + 1)
            case "clear":
                self.record = AlertRecord("late", "queue:mail", "clear", before.change + 1)
        return decided.doing


LOOKS = st.lists(st.tuples(st.booleans(), st.integers(1, 90)), max_size=60)


@FEW
@given(LOOKS, st.integers(0, 120), st.integers(0, 120))
def test_an_alert_changes_only_after_its_condition_has_lasted(
    looks: list[tuple[bool, int]], holds_for: int, clear_after: int
) -> None:
    story, now = Story(), NOW
    history: list[tuple[datetime, bool]] = []
    for holds, seconds in looks:
        now += seconds * SECOND
        history.append((now, holds))

        doing = story.look(holds, now, holds_for * SECOND, clear_after * SECOND)

        if doing in {"fire", "clear"}:
            wanted = doing == "fire"
            needed = (holds_for if wanted else clear_after) * SECOND
            assert all(held == wanted for at, held in history if now - at < needed or at == now)


@FEW
@given(LOOKS, st.integers(1, 120), st.integers(1, 120))
def test_firing_and_clear_take_turns(looks: list[tuple[bool, int]], holds_for: int, clear_after: int) -> None:
    story, now, done = Story(), NOW, []
    for holds, seconds in looks:
        now += seconds * SECOND
        doing = story.look(holds, now, holds_for * SECOND, clear_after * SECOND)
        if doing in {"fire", "clear"}:
            done.append(doing)

    assert all(before != after for before, after in pairwise(done))
    assert done[:1] in ([], ["fire"])


@FEW
@given(st.integers(0, 300), st.integers(1, 60))
def test_a_condition_that_lasts_fires_once_and_in_time(holds_for: int, every: int) -> None:
    story, fired, first = Story(), [], None
    for number in range(holds_for // every + 3):
        now = NOW + number * every * SECOND
        first = first or now
        if story.look(True, now, holds_for * SECOND, MINUTE) == "fire":
            fired.append(now - first)

    assert len(fired) == 1
    assert holds_for * SECOND <= fired[0] <= (holds_for + every) * SECOND


def test_a_condition_that_comes_and_goes_faster_than_its_time_never_fires() -> None:
    story = Story()

    done = [story.look(number % 2 == 0, NOW + number * 50 * SECOND, MINUTE, MINUTE) for number in range(20)]

    assert set(done) == {"wait"}
