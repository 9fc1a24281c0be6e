"""From what a caller wishes to what one process does."""

from datetime import timedelta
from pathlib import Path

import pytest

from duly.client.settings import Settings, resolve
from duly.core.errors import UsageError
from duly.worker.options import WorkerOptions, plan, read_queues, usable_cores


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return resolve({}, environ={}, directory=tmp_path)


def test_nothing_said_means_every_declared_queue_and_the_defaults(settings: Settings) -> None:
    made = plan(WorkerOptions(), settings, ["mail", "reports"])

    assert made.queues == {"default": None, "mail": None, "reports": None}
    assert (made.concurrency, made.threads, made.isolated, made.processes) == (50, 10, usable_cores(), 1)
    assert (made.lease, made.heartbeat, made.grace) == (30.0, 5.0, 25.0)


def test_what_was_said_goes_before_the_settings(settings: Settings) -> None:
    options = WorkerOptions(queues={"mail": 8}, concurrency=3, grace=timedelta(0))

    made = plan(options, settings, ["mail"])

    assert (made.queues, made.concurrency, made.grace) == ({"mail": 8}, 3, 0.0)


def test_excepted_queues_are_left_out(settings: Settings) -> None:
    made = plan(WorkerOptions(except_queues=("default",)), settings, ["mail"])

    assert made.queues == {"mail": None}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (WorkerOptions(queues={"mial": None}), "queue 'mial' is not declared"),
        (WorkerOptions(except_queues=("default", "mail")), "no queue is left"),
        (WorkerOptions(concurrency=0), "concurrency=0 must be 1 or more"),
        (WorkerOptions(lease=timedelta(seconds=10)), "write a lease of '15s' or more"),
    ],
)
def test_wishes_that_cannot_be_met_say_what_to_write(
    settings: Settings, options: WorkerOptions, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        plan(options, settings, ["mail"])


def test_queues_are_read_with_and_without_slots() -> None:
    assert read_queues("mail:8, reports:2,rest") == {"mail": 8, "reports": 2, "rest": None}


@pytest.mark.parametrize("text", ["mail:0", "mail:x", "mail:-1", "", "a b"])
def test_a_misspelt_list_of_queues_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_queues(text)


def test_the_poll_depends_on_whether_the_store_can_ring(settings: Settings) -> None:
    made = plan(WorkerOptions(), settings, [])

    assert made.poll_every(rings=True) == 1.0
    assert made.poll_every(rings=False) == 0.2
    assert plan(WorkerOptions(poll=timedelta(seconds=3)), settings, []).poll_every(rings=True) == 3.0
