"""Real worker processes: whoever has the turn tells a real HTTP sink, once for the whole fleet."""

import pytest

from duly.core.job import NewJob
from tests.alerts.servers import receiver
from tests.e2e.workers import Place
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]
APP = "tests.e2e.watched_app:jobs"


def test_a_dead_letter_is_told_once_by_a_fleet_of_two(place: Place) -> None:
    with receiver() as hook, receiver() as watcher:
        where = {"DULY_ALERTS": f"page=webhook+{hook.url}", "DULY_ALIVE_URL": f"{watcher.url}/ping"}
        workers = [place.start(APP, where), place.start(APP, where)]
        place.store.jobs.enqueue([NewJob(queue="first", task="die", args=b"{}")])

        wait_until(lambda: hook.requests, timeout=90, what=f"a notification\n{workers[0].log}")
        wait_until(lambda: watcher.requests, timeout=60, what="a sign of life")
        for worker in workers:
            assert worker.stop() == 0

    said = [request.json["data"] for request in hook.requests]
    assert [(one["rule"], one["target"], one["state"]) for one in said] == [
        ("dead-letter", "queue:first", "firing")
    ]


def test_queues_that_nobody_watches_are_named_at_the_start_and_told_of_in_the_log(place: Place) -> None:
    worker = place.start(APP)
    place.store.jobs.enqueue([NewJob(queue="first", task="die", args=b"{}")])

    worker.wait_said("nobody owns, and no alert watches, first, second")
    worker.wait_said("alert FIRING dead-letter queue:first: 1 dead letter, the latest of die: ", timeout=90)

    assert worker.stop() == 0


def test_a_sink_that_cannot_be_read_starts_no_worker(place: Place) -> None:
    worker = place.start(APP, {"DULY_ALERTS": "page=gopher://hole"})

    assert worker.wait() != 0
    assert "no sink is made of 'gopher'" in worker.log
