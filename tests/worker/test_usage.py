"""How uses of resources ended, as breakers count them; and when a process tells the store."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from duly.core.control import Calls
from duly.core.job import Counters, Ended, JobId
from duly.core.lifecycle import Event, State
from duly.telemetry.hub import Hub
from duly.worker.usage import Observe, Usage, failed, judged, uses

API, DB = "resource:api", "resource:db"
SECOND = timedelta(seconds=1)


def end(event: Event, *, transient: bool = False, elapsed: timedelta | None = SECOND) -> Ended:
    to = State.completed if event is Event.complete else State.scheduled
    return Ended(JobId(1), 1, event, to, Counters(), elapsed=elapsed, transient=transient)


def test_the_first_use_after_a_pause_is_told_at_once_and_the_others_together() -> None:
    told: list[str] = []
    usage = Usage()
    usage.soon = lambda: told.append("now")

    usage.note("resource:api", 1, 1)
    first = usage.take()
    usage.note("resource:api", 1, 0)
    usage.note("resource:api", 1, 1)
    busy = (usage.take(), list(told))
    assert usage.take() == []
    usage.note("resource:api", 1, 0)

    assert [(one.calls, one.failures) for one in first] == [(1, 1)]
    assert [(one.calls, one.failures) for one in busy[0]] == [(2, 1)]
    assert busy[1] == ["now"]
    assert told == ["now", "now"]


@pytest.mark.parametrize(
    ("ended", "failure"),
    [
        (end(Event.complete), False),
        (end(Event.fail, transient=True), True),
        (end(Event.fail, transient=False), False),
        (end(Event.fail, transient=True, elapsed=None), None),
        (end(Event.snooze), None),
        (end(Event.skip), None),
        (end(Event.interrupt), None),
        (end(Event.lose), None),
    ],
    ids=lambda value: str(getattr(value, "event", value)),
)
def test_an_end_is_a_failure_an_answer_or_says_nothing(ended: Ended, failure: bool | None) -> None:
    assert judged(ended) is failure


def test_a_block_that_spoke_of_a_resource_stands_for_its_attempt() -> None:
    ended = end(Event.fail, transient=True)

    assert list(uses((API, DB), frozenset({DB}), ended)) == [(API, True)]
    assert list(uses((API, DB), frozenset(), end(Event.complete))) == [(API, False), (DB, False)]
    assert list(uses((API, DB), frozenset(), end(Event.snooze))) == []


@pytest.mark.parametrize(
    ("outcome", "why", "failure"),
    [
        ("failed", None, True),
        ("done", None, False),
        ("cut", "timeout", True),
        ("cut", "shutdown", None),
        ("cut", None, None),
    ],
)
def test_a_block_cut_short_is_a_failure_only_when_its_time_was_over(
    outcome: Any, why: str | None, failure: bool | None
) -> None:
    assert failed(outcome, why) is failure


def test_what_could_not_be_told_is_told_the_next_time_with_the_rest() -> None:
    told: list[Sequence[Calls]] = []
    usage, away = Usage(), [True]

    class Control:
        def observe(self, calls: Sequence[Calls]) -> list[Any]:
            if away.pop():
                raise ConnectionError("away")
            told.append(calls)
            return []

    control: Any = Control()
    duty = Observe(usage, control, Hub())
    usage.note(API, 2, 1)
    with pytest.raises(ConnectionError):
        duty.run(0.0)
    usage.note(API, 1, 0)
    away.append(False)

    duty.run(1.0)

    assert [(one.resource, one.calls, one.failures) for one in told[0]] == [(API, 3, 1)]
