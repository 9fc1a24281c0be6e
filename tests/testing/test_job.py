"""`job(...)`: a Job for bare functions."""

from datetime import timedelta

import pytest

from duly import App, Job, Snooze
from duly.testing import job

jobs = App("sqlite:///never-opened.db")


@jobs.task
def embed(job: Job, photos: list[str]) -> int:
    done = 0
    for number, photo in enumerate(photos):
        if job.should_stop:
            raise Snooze("0s", f"cut at {number}")
        done += job.step(photo, lambda: 1)
        job.progress(number + 1, of=len(photos))
    return done


def test_a_handler_about_to_be_stopped_sees_it() -> None:
    with pytest.raises(Snooze):
        embed.fn(job(time_left="1s"), ["a"])


def test_a_handler_with_time_does_its_work() -> None:
    assert embed.fn(job(), ["a", "b"]) == 2


def test_stopping_may_be_said_outright() -> None:
    assert job(should_stop=True).should_stop
    assert not job(time_left="1s", should_stop=False).should_stop
    assert job(time_left="0s", should_stop=False).should_stop


def test_it_is_what_the_test_says() -> None:
    made = job(id=7, task="embed", queue="gpu", attempt=3, tenant="acme", tags=("a",), trigger="schedule:x")

    assert (made.id, made.task, made.queue, made.attempt) == (7, "embed", "gpu", 3)
    assert (made.tenant, made.tags, made.trigger) == ("acme", ("a",), "schedule:x")
    assert timedelta(minutes=14) < made.time_left() <= timedelta(minutes=15)
    assert made.effect_key("charge") == "duly-7-charge"


def test_a_loop_goes_on_where_an_earlier_attempt_left_it() -> None:
    assert list(job(cursors={"rows": 2}).each("rows", ["a", "b", "c"])) == ["c"]


def test_completing_writes_nothing() -> None:
    job().complete("done")
