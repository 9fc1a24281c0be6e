"""What is said of ends that were stored."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.control import Ordering
from duly.core.decide import Policy, failed
from duly.core.fingerprint import describe
from duly.telemetry.events import Happening, JobDied, KeyStopped
from duly.telemetry.hub import Hub
from duly.worker.news import News
from tests.worker.doubles import an_app, an_attempt, cards


def heard(ordering: Ordering, key: str | None) -> list[Happening]:
    """What is said of a job's death."""
    attempt = an_attempt(cards(an_app())["on_loop"], 7)
    attempt.job = replace(attempt.job, ordering_key=key, tenant="acme")
    once = Policy(1, Backoff(), 10)
    error = describe(ValueError("no"))
    ended = failed(attempt.job, Verdict("permanent"), once, 0.5, error, timedelta(seconds=1))
    told: list[Happening] = []
    hub = Hub()
    hub.listen(told.append)
    News(hub, lambda queue: ordering).stored(attempt, ended)
    return told


@pytest.mark.parametrize("ordering", ["wait", "pause_key"])
def test_a_dead_head_is_announced_at_once_with_what_frees_its_key(ordering: Ordering) -> None:
    died, stopped = heard(ordering, "order:7")

    assert isinstance(died, JobDied)
    assert stopped == KeyStopped(7, "default", "acme", "order:7")
    assert stopped.sentence() == (
        "ordering key order:7 of default stands still behind job 7, which is dead. Again: duly dead redrive 7; on "
        "without it: duly resume key:default/order:7 --tenant acme"
    )


def test_where_the_dead_are_passed_by_or_there_is_no_key_nothing_stands_still() -> None:
    assert [type(one) for one in heard("skip_dead", "order:7")] == [JobDied]
    assert [type(one) for one in heard("wait", None)] == [JobDied]
