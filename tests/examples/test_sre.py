"""The night of an SRE: mails are late and tens of thousands of them dead. Every command as it is typed, on both stores.

Time is the store's, and only the test moves it: a wait is what the store says of it, however slow this machine is.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from duly import App
from duly.cli.session import Session
from duly.client.operations import Pace, advance
from duly.core.control import LimitPolicy, queue_limit
from duly.core.decide import completed
from duly.core.filters import Filter
from duly.core.fingerprint import told
from duly.core.job import ClaimedJob, ClaimRequest, NewJob, QueueClaim, UniqueKey, WorkerInfo
from duly.core.keys import unique_digest
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.testing.clock import FakeClock
from duly.testing.conformance.bench import ended
from tests.cli.conftest import Answer, run
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
TARGET = timedelta(seconds=30)
CAP = 60
TODAY, REDRIVEN = 30, 20
"""Mails of today and dead ones a second; each takes a second, so that together they need most of the cap."""
GONE = told("SMTPServerDisconnected", "Connection unexpectedly closed", "Traceback: smtp.py, line 7\n")
UNKNOWN = told("UnknownAccount", "no account 17", "Traceback: mail.py, line 3\n")


class Night:
    """The shop's store, its clock, and a worker reduced to its calls of the store."""

    def __init__(self, app: App, clock: FakeClock) -> None:
        self.app = app
        self.clock = clock
        self.store = app.store
        self.waits: list[timedelta] = []
        """Of today's mail, from the enqueue to the claim."""
        self.again = 0
        """Dead mails that were claimed again."""
        self.running: list[ClaimedJob] = []
        self._seconds = 0.0
        self._pace = Pace()
        self._number = 0
        self.store.schema.declare(
            Registration(
                "shop",
                "1",
                (
                    QueuePolicy("mail", owner="growth@shop", wait_target=TARGET, fair=True),
                    QueuePolicy("reports", owner="bi@shop"),
                ),
                (TaskPolicy("send_receipt", "mail", 100),),
                limits=(LimitPolicy(queue_limit("mail"), max_running=CAP),),
            )
        )
        self.worker = self.store.leases.register(
            WorkerInfo(
                "mail-1", 1, "mail-1:1", ("mail",), {"send_receipt": 15 * MINUTE}, timedelta(hours=9), SECOND,
                CAP, "1",
            )
        )  # fmt: skip

    def put(self, count: int, tenant: str = "", **more: Any) -> None:
        jobs = []
        for _ in range(count):
            self._number += 1
            whose = tenant or f"shop-{self._number % 40}"
            args = msgspec.json.encode({"order_id": self._number})
            jobs.append(NewJob("mail", "send_receipt", args, tenant=whose, fair=True, **more))
        self.store.jobs.enqueue(jobs)

    def kill(self, count: int, error: Any, **more: Any) -> None:
        """So many more mails that have died of it."""
        for start in range(0, count, CAP):
            part = min(CAP, count - start)
            self.put(part, **more)
            claimed = self.claim(part)
            ends = [ended(job, Event.bury, State.dead, error=error, reason="gave up") for job in claimed]
            assert len(self.store.jobs.exchange(self.worker, ends, None).acked) == part

    def claim(self, most: int = CAP) -> tuple[ClaimedJob, ...]:
        request = ClaimRequest((QueueClaim("mail", most, fair=True),), most)
        return self.store.jobs.exchange(self.worker, [], request).claimed

    def second(self, today: int = TODAY) -> int:
        """One second passes: what ran has ended, mails come, an operation goes on, free slots are filled. How many dead
        mails the operation has moved."""
        self.clock.advance(SECOND)
        self._seconds += 1.0
        if today:
            self.put(today)
        moved = advance(self.store, pace=self._pace, clock=lambda: self._seconds)
        ends = [completed(job, None, SECOND) for job in self.running]
        request = ClaimRequest((QueueClaim("mail", CAP, fair=True),), CAP)
        self.running = [*self.store.jobs.exchange(self.worker, ends, request).claimed]
        for job in self.running:
            if job.run > 1:
                self.again += 1
            elif job.tenant != "bigco":
                self.waits.append(job.claimed_at - job.enqueued_at)
        if self._seconds % 10 == 0:
            self.store.upkeep.sweep(60 * MINUTE, 3, timedelta(0))
        return moved

    def duly(self, *args: str) -> Answer:
        """Run `duly ARGS` on this store and by its clock."""
        session = Session()
        app = App(self.app.settings.url)
        app.client.clock = self.clock
        session.keep("", app)
        try:
            return run(*args, session=session)
        finally:
            session.close()


@pytest.fixture(params=["sqlite", "postgres"])
def night(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Night]:
    monkeypatch.setenv("DULY_ACTOR", "ada@ops")
    monkeypatch.setenv("COLUMNS", "160")
    app = App(request.getfixturevalue(f"{request.param}_url"))
    # So long ago that it is about now when somebody is called: flags such as --since look at a real clock.
    clock = FakeClock(datetime.now(UTC).replace(microsecond=0) - 50 * MINUTE)
    app.client.clock = clock
    app.store.schema.migrate()
    yield Night(app, clock)
    app.close()


@pytest.mark.parametrize(
    "dead", [1_200, pytest.param(40_098, marks=[pytest.mark.long, pytest.mark.timeout(900)])]
)
def test_dead_mails_run_again_at_a_rate_while_todays_mail_keeps_its_wait_target(
    night: Night, dead: int
) -> None:
    _the_evening(night, dead)

    _why_are_mails_late(night, dead)
    _limit_the_flood(night)
    fingerprint = _look_at_the_dead(night, dead)
    _try_one(night, fingerprint)
    _redrive_the_rest(night, fingerprint, dead - 1)
    _quiet_until_morning(night)
    _what_was_done(night, fingerprint)


def _the_evening(night: Night, dead: int) -> None:
    """The provider drops connections for a while, then answers slowly; a customer sends a flood."""
    taken = UniqueKey(unique_digest("send_receipt", "", "twin"), False, False)
    night.kill(1, GONE, unique=taken)
    night.clock.advance(4 * MINUTE)
    night.kill(dead - 1, GONE)
    night.kill(14, UNKNOWN)
    # Somebody has asked for one of them again, for tomorrow.
    night.put(1, unique=taken, delay=timedelta(hours=20))
    night.put(CAP + 600, tenant="bigco")
    night.running = [*night.claim()]
    night.put(40)
    night.clock.advance(44 * MINUTE)


def _why_are_mails_late(night: Night, dead: int) -> None:
    status = night.duly("status")
    why = night.duly("why", "mail")
    document = night.duly("why", "mail", "-o", "json").json

    assert status.code == why.code == 0
    assert re.search(r"^mail +6\d\d +", status.out, re.MULTILINE)
    assert isinstance(document, dict)
    found: dict[str, list[tuple[str, str | None]]] = {}
    for reason in document["reasons"]:
        found.setdefault(reason["kind"], []).append((reason["text"], reason["change"]))
    assert "wait_target=30s" in found["late"][0][0]
    assert found["cap"] == [
        (
            "its cap is reached: 60 of 60 run, all of them send_receipt",
            "duly limit mail --max-running 180 --for 2h --reason WHY",
        )
    ]
    (flood, cap) = found["tenant"][0]
    assert flood.startswith("tenant bigco has about ")
    assert cap == "duly limit mail --tenant bigco --max-running 5 --for 2h --reason WHY"
    (first, see), (second, _) = found["dead"]
    assert first == (
        f"{dead:,} dead, the first 48m ago: SMTPServerDisconnected: Connection unexpectedly closed "
        f"({GONE.fingerprint})"
    )
    assert see == f"duly dead show {GONE.fingerprint}"
    assert second.startswith("14 dead, the first 44m ago: UnknownAccount")


def _limit_the_flood(night: Night) -> None:
    limited = night.duly(
        "limit",
        "mail",
        "--tenant",
        "bigco",
        "--max-running",
        "5",
        "--for",
        "2h",
        "--reason",
        "flood, INC-311",
    )

    night.second(today=0)

    assert limited.code == 0, limited.err
    assert "override 1" in limited.out
    # The others come through at once, past 600 mails that stood before them.
    assert sum(job.tenant == "bigco" for job in night.running) <= 5
    assert sum(job.tenant != "bigco" for job in night.running) == 40
    night.waits.clear()


def _look_at_the_dead(night: Night, dead: int) -> str:
    groups = night.duly("dead", "groups", "--queue", "mail", "--since", "3h")
    acked = night.duly("dead", "ack", GONE.fingerprint, "--note", "INC-311")
    listed = night.duly("dead", "groups", "--queue", "mail", "-o", "json").json

    assert groups.code == acked.code == 0
    assert f"{dead + 14:,} dead letters in 2 groups" in groups.lines
    assert isinstance(listed, list)
    assert [(one["fingerprint"], one["count"], one["owner"], one["state"]) for one in listed] == [
        (GONE.fingerprint, dead, "growth@shop", "acknowledged"),
        (UNKNOWN.fingerprint, 14, "growth@shop", "new"),
    ]
    dry = night.duly("dead", "redrive", "--fingerprint", GONE.fingerprint[:4], "--dry-run")
    assert dry.lines == [
        f"{dead:,} jobs would run again; nothing was done",
        "the oldest is dead for 48m",
        "1 of them has a live twin by unique key and would stay dead while it lives",
    ]
    return GONE.fingerprint


def _try_one(night: Night, fingerprint: str) -> None:
    """The oldest has a twin and stays dead; it says so. Another one is tried by its number."""
    refused = night.duly("dead", "redrive", "--fingerprint", fingerprint, "--first", "1", "--follow")
    jobs = night.app.inspect.jobs(Filter(fingerprint=fingerprint, state=State.dead), limit=1).jobs
    answers: list[Answer] = []
    follower = threading.Thread(
        target=lambda: answers.append(night.duly("dead", "redrive", str(jobs[0].id), "--follow")), daemon=True
    )

    follower.start()
    wait_until(lambda: night.second() >= 0 and night.again == 1, what="the redriven mail to start")
    night.second()
    follower.join(30)

    assert refused.code == 4
    assert not follower.is_alive()
    assert answers[0].code == 0
    assert answers[0].lines[0] == "1 job will run again"
    assert "completed" in answers[0].lines[-1]
    night.again = 0


def _redrive_the_rest(night: Night, fingerprint: str, left: int) -> None:
    while night.app.inspect.queue("mail").counts.out_per_s is None:
        night.second()
    which = ("dead", "redrive", "--fingerprint", fingerprint)
    silent = night.duly(*which, "--yes")
    unpaced = night.duly(*which, "--reason", "INC-311", "--yes")
    started = night.duly(*which, "--rate", f"{REDRIVEN}/s", "--reason", "INC-311", "--yes")

    assert (silent.code, unpaced.code, started.code) == (2, 2, 0)
    assert "say why with --reason" in silent.err
    assert re.search(rf"{left:,} jobs: say how fast with --rate \(mail finishes [\d.,]+/s now\)", unpaced.err)
    assert started.lines[0].startswith(f"operation 1 started: {left:,} jobs, about ")
    assert "at priority 200" in started.lines[0]
    moved = [night.second() for _ in range(20)]
    held = night.duly("operations", "pause", "1", "--reason", "a look first")
    still = [night.second() for _ in range(3)]
    shown = night.duly("operations", "show", "1", "-o", "json").json
    night.duly("operations", "resume", "1")
    while night.app.inspect.operation(1).state == "running":
        moved.append(night.second())
    while night.app.inspect.queue("mail").counts.running:
        night.second(today=0)

    assert (held.code, still) == (0, [0, 0, 0])
    assert isinstance(shown, dict)
    # The first of them, the twin's letter, was taken up and stays.
    assert (shown["state"], shown["total"], shown["done"]) == ("paused", left, sum(moved[:20]) + 1)
    operation = night.app.inspect.operation(1)
    assert (operation.state, operation.done, operation.skipped) == ("done", left - 1, 1)
    assert max(moved) <= REDRIVEN + 1
    # The twin alone is left; every other one has run once more, and nobody waited too long for that.
    assert sum(moved) == night.again == left - 1
    assert len(night.waits) > 20 * TODAY
    assert max(night.waits) <= TARGET
    (group,) = night.app.inspect.dead_groups(Filter(fingerprint=fingerprint))
    assert group.count == 1


def _quiet_until_morning(night: Night) -> None:
    paused = night.duly("pause", "reports", "--for", "30m", "--reason", "INC-311")
    silenced = night.duly("alerts", "silence", "queue:mail", "--for", "1h", "--reason", "INC-311")
    lifted = night.duly("overrides", "lift", "1", "--reason", "the flood is over")
    fixed = night.duly("dead", "fixed", GONE.fingerprint, "--note", "provider is back, INC-311")

    assert [one.code for one in (paused, silenced, lifted, fixed)] == [0, 0, 0, 0]
    (pause,) = night.app.inspect.pauses()
    assert (pause.target, pause.until) == ("queue:reports", night.clock() + 30 * MINUTE)
    (silence,) = night.app.inspect.silences()
    assert (silence.target, silence.by, silence.until - night.clock()) == (
        "queue:mail",
        "ada@ops",
        60 * MINUTE,
    )
    assert night.app.inspect.overrides() == ()


def _what_was_done(night: Night, fingerprint: str) -> None:
    listed = night.duly("audit", "list", "--since", "24h", "--limit", "10000", "-o", "json").json
    while night.store.audits.seal() is not None:
        pass
    night.clock.advance(MINUTE)
    verified = night.duly("audit", "verify")

    assert isinstance(listed, dict)
    acts = [(one["verb"], one["target"], one["reason"]) for one in reversed(listed["entries"])]
    assert {one["by"] for one in listed["entries"]} == {"ada@ops"}
    moves = [act for act in acts if act[0] != "redrive" or act[2] != "INC-311"]
    assert moves == [
        ("limit", "tenant:mail=bigco", "flood, INC-311"),
        ("mark", f"dead:{fingerprint}", ""),
        ("redrive", moves[2][1], ""),
        ("start", "operation:1", "INC-311"),
        ("pause", "operation:1", "a look first"),
        ("resume", "operation:1", ""),
        ("pause", "queue:reports", "INC-311"),
        ("silence", "alert:*:queue:mail", "INC-311"),
        ("lift", moves[8][1], "the flood is over"),
        ("mark", f"dead:{fingerprint}", ""),
    ]
    assert verified.code == 0, verified.out
