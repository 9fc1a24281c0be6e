"""The demo's summary counts what the store kept, and names everything that is not as it must be."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from duly.core.fingerprint import ErrorRecord
from duly.core.job import AttemptRecord, Counters, Incarnation, JobId, JobRecord
from duly.core.lifecycle import Event, State
from duly.demo.ledger import Kill, Ledger, draw_up, lines
from duly.demo.photos import Expected, Photo

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
BLACK = ((0, 0, 0),) * 4
EXPECTED = Expected(60, 40, BLACK, BLACK)
PHOTOS = [
    Photo("/p/a.jpg", "a.jpg", "plain", EXPECTED),
    Photo("/p/b.jpg", "b.jpg", "taken", EXPECTED),
    Photo("/p/cut.jpg", "cut.jpg", "truncated", None),
    Photo("/p/text.jpg", "text.jpg", "text", None),
]


def record(id: int, state: State, error: str = "", run: int = 1) -> JobRecord:
    return JobRecord(
        id=JobId(id),
        state=state,
        queue="photos",
        task="resize",
        tenant="",
        priority=100,
        tags=("demo",),
        correlation_id=str(id),
        args=b"{}",
        counters=Counters(),
        run=run,
        attempts=3,
        timeout=None,
        enqueued_at=NOW,
        error=ErrorRecord(error, "no picture", "", "a91f03c2") if error else None,
    )


def attempt(run: int, event: Event, started: datetime | None = NOW) -> AttemptRecord:
    return AttemptRecord(run, event, Incarnation(1), started, NOW, None, None)


def good_run() -> dict[str, JobRecord | None]:
    return {
        "a.jpg": record(1, State.completed),
        "b.jpg": record(2, State.completed, run=2),
        "cut.jpg": record(3, State.dead, "duly.demo.pictures.BrokenPhoto"),
        "text.jpg": record(4, State.dead, "PIL.UnidentifiedImageError"),
    }


ATTEMPTS = {
    "a.jpg": [],
    "b.jpg": [attempt(1, Event.interrupt, started=None), attempt(2, Event.lose), attempt(3, Event.complete)],
    "cut.jpg": [attempt(1, Event.fail)],
    "text.jpg": [attempt(1, Event.fail)],
}


def ledger(
    records: dict[str, JobRecord | None],
    *,
    kills: tuple[Kill, ...] = (Kill(4711, 2),),
    attempts: dict[str, list[AttemptRecord]] = ATTEMPTS,
    wrong: tuple[str, ...] = (),
) -> Ledger:
    return draw_up(
        PHOTOS, records, attempts, kills, wrong, seconds=31.2, url="sqlite:///d.db", folder="/p/resized"
    )


def test_a_good_run_is_counted_and_has_no_failures() -> None:
    drawn = ledger(good_run())

    assert drawn.ok
    assert lines(drawn) == [
        "photographs      4  3 made, 1 taken; 2 are broken",
        "jobs             4  2 completed, 2 dead, 0 unfinished",
        "attempts         5  2 completed, 2 failed, 1 lost by the kill",
        "killed           1  worker 4711 killed after 2 photographs",
        "dead letters     2",
        "                     cut.jpg  duly.demo.pictures.BrokenPhoto: no picture",
        "                     text.jpg  PIL.UnidentifiedImageError: no picture",
        "files           10  each there once, opens, has the right size, turn and colours",
        "seconds         31",
    ]


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ({"a.jpg": None}, "the job of a.jpg is gone"),
        ({"a.jpg": record(1, State.ready)}, "the job of a.jpg is ready and not completed"),
        ({"a.jpg": record(1, State.dead, "OSError")}, "the job of a.jpg is dead and not completed"),
        ({"cut.jpg": record(3, State.completed)}, "the job of cut.jpg is completed and not dead"),
        (
            {"text.jpg": record(4, State.dead, "OSError")},
            "text.jpg is dead of OSError: no picture, not of UnidentifiedImageError",
        ),
    ],
)
def test_a_job_that_ended_otherwise_is_named(change: dict[str, JobRecord | None], failure: str) -> None:
    drawn = ledger({**good_run(), **change})

    assert drawn.failures == (failure,)
    assert lines(drawn)[-1] == f"WRONG: {failure}"


def test_a_run_without_a_kill_proves_nothing() -> None:
    assert ledger(good_run(), kills=()).failures == ("no worker was killed: the jobs were done too soon",)


def test_a_kill_that_cost_no_attempt_proves_nothing() -> None:
    drawn = ledger(good_run(), attempts={**ATTEMPTS, "b.jpg": []})

    assert drawn.failures == ("a worker was killed, but no attempt is recorded as lost",)


def test_wrong_files_fail_the_run() -> None:
    drawn = ledger(good_run(), wrong=("a.jpg.thumb.webp is missing",))

    assert not drawn.ok
    assert drawn.failures == ("a.jpg.thumb.webp is missing",)


def test_the_ledger_can_be_read_by_programs() -> None:
    encoded = msgspec.json.encode(ledger(good_run()))

    assert msgspec.json.decode(encoded, type=Ledger) == ledger(good_run())
