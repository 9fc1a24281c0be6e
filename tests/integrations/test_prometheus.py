"""The state of a store as metrics: right in every state of a job, and said also when nothing moves."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from duly import App, Breaker
from duly.core.decide import undecodable
from duly.core.fingerprint import describe
from duly.integrations.prometheus import Collector, exposition
from duly.telemetry.metrics import STORE
from duly.telemetry.prometheus import exposed
from duly.testing import FakeClock
from duly.worker.registration import declare
from tests.client.conftest import Hands

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(params=["sqlite", "postgres"])
def jobs(request: pytest.FixtureRequest) -> Iterator[App]:
    app = App(request.getfixturevalue(f"{request.param}_url"))
    app.client.clock = FakeClock()
    app.queue("mail", owner="ana", wait_target="30s", max_depth=100)
    app.store.schema.migrate()
    yield app
    app.close()


def samples(text: bytes) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def of(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]


def test_the_oldest_age_is_of_jobs_that_are_ready_and_of_no_others(jobs: App) -> None:
    @jobs.task(queue="mail")
    def send() -> None: ...

    hands = Hands(jobs.store, "send", queues=("mail",))
    send.using(ordering_key="a").enqueue()
    send.using(ordering_key="a").enqueue()
    send.using(delay="10h").enqueue()
    hands.claim()
    clock = _clock(jobs)
    clock.advance("30m")

    before = samples(exposition(jobs))
    send.enqueue()
    clock.advance("7s")
    after = samples(exposition(jobs))

    assert of(before, "duly_queue_oldest_ready_seconds", queue="mail") == 0
    assert of(after, "duly_queue_oldest_ready_seconds", queue="mail") == 7
    states = {
        state: of(after, "duly_queue_jobs", queue="mail", state=state)
        for state in ("ready", "scheduled", "blocked", "running", "dead")
    }
    assert states == {"ready": 1, "scheduled": 1, "blocked": 1, "running": 1, "dead": 0}
    assert of(after, "duly_queue_wait_target_seconds", queue="mail") == 30
    assert of(after, "duly_queue_max_depth", queue="mail") == 100


def test_an_idle_queue_full_of_dead_letters_does_not_look_fine(jobs: App) -> None:
    @jobs.task(queue="mail")
    def send() -> None: ...

    jobs.schedule("digest", send.draft(), every=timedelta(hours=1))
    hands = Hands(jobs.store, "send", queues=("mail",))
    for _ in range(3):
        send.enqueue()
    hands.end(*(undecodable(job, describe(ValueError("broken"))) for job in hands.claim()))
    jobs.store.leases.retire(hands.incarnation)
    time, clock = [0.0], _clock(jobs)
    collector = Collector(jobs.inspect, lambda: time[0])

    seen = []
    for _ in range(3):
        clock.advance("2h")
        time[0] += 7200
        seen.append(samples(exposed(collector.collect())))

    assert [of(found, "duly_queue_jobs", queue="mail", state="dead") for found in seen] == [3, 3, 3]
    assert [of(found, "duly_dead_oldest_seconds", queue="mail") for found in seen] == [7200, 14400, 21600]
    assert [of(found, "duly_schedule_late_seconds", schedule="digest") for found in seen] == [
        3600,
        10800,
        18000,
    ]
    assert [of(found, "duly_workers") for found in seen] == [0, 0, 0]
    assert [of(found, "duly_store_up") for found in seen] == [1, 1, 1]


def test_the_limit_of_a_resource_and_a_pause_are_seen_and_a_tenants_are_no_series_of_their_own(
    jobs: App,
) -> None:
    stripe = jobs.resource("stripe", max_running=2)

    @jobs.task(queue="mail", uses=[stripe])
    def pay() -> None: ...

    jobs.operate.tenant("acme", max_running=1)
    declare(jobs)
    jobs.operate.pause("mail", reason="a test")

    found = samples(exposition(jobs))

    assert of(found, "duly_limit_max_running", limit="resource:stripe") == 2
    assert of(found, "duly_queue_paused", queue="mail") == 1
    assert not [labels for name, labels in found if "acme" in str(labels)]


def test_all_of_the_table_is_exposed_and_nothing_else(jobs: App) -> None:
    stripe = jobs.resource("stripe", max_running=2, breaker=Breaker())

    @jobs.task(queue="mail", uses=[stripe])
    def send() -> None: ...

    jobs.schedule("digest", send.draft(), every=timedelta(hours=1))
    declare(jobs)
    clock = _clock(jobs)
    hands = Hands(jobs.store, "send", queues=("mail",))
    send.enqueue()
    send.enqueue()
    completed, broken = hands.claim()
    hands.complete(completed)
    hands.end(undecodable(broken, describe(ValueError("broken"))))
    for _ in range(20):
        # It grows, so that there is a time when it will be full.
        jobs.enqueue_many([send.draft(), send.draft()])
        clock.advance("30s")
        jobs.store.upkeep.sweep(timedelta(hours=1), 3, timedelta(minutes=1))

    found = samples(exposition(jobs))

    named = {name for metric in STORE for name in metric.samples}
    # These two are of a store with a budget.
    assert named - {name for name, _ in found} == {"duly_store_bytes", "duly_store_filled_ratio"}
    assert {name for name, _ in found} <= named
    assert of(found, "duly_runs_per_completed_last_hour", task="send") == 2


def test_a_store_that_does_not_answer_is_down_and_nothing_else(tmp_path: Path) -> None:
    app = App("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1")

    found = samples(exposition(app))

    app.close()
    assert found == {("duly_store_up", ()): 0}


def _clock(jobs: App) -> FakeClock:
    clock = jobs.client.clock
    assert isinstance(clock, FakeClock)
    return clock
